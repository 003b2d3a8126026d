// Grouped convolution on the CPU, forward and backward to the data (grouped_internal.h). Threads
// take blocks of rows and columns of images. A source of f32 or f64 in channels-last order is read
// in place; other sources are converted block by block, and other targets are written through rows
// of the compute dtype.
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/conv/conv2d_window_internal.h>
#include <binade/kernels/conv/grouped_internal.h>
#include <binade/kernels/gemm/contraction_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int64_t kWindowElements = 64 * 1024;  // of a block of a source that is converted
constexpr int64_t kFarBytes = 8 << 20;          // of source and target, which come from memory
constexpr int64_t kMinTasks = 16;               // so that a single image keeps several threads busy
constexpr int64_t kMinBlockRows = 4, kMinBlockColumns = 32;

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

class GroupedCorrelator {
 public:
  GroupedCorrelator(const Correlation& c, const GroupedLanes& lanes)
      : c_(c),
        lanes_(lanes),
        compute_(compute_dtype(c.target.dtype)),
        size_(static_cast<int64_t>(size_of(compute_))),
        in_place_(c.source.dtype == compute_ && !lanes.is_expanded() &&
                  (c.source.strides[1] == 1 || c.source.size(1) == 1)),
        direct_(c.target.dtype == compute_ && (c.target.strides[1] == 1 || c.target.size(1) == 1)),
        rotations_(lane_rotations(lanes, -1)),
        weights_(static_cast<size_t>(lanes.vectors() * vector_weights(c.w.size(2) * c.w.size(3)) *
                                     size_)) {
    if (lanes.is_expanded()) {
      expanded_ = expanded_channels(lanes);
    }
  }

  void run() {
    pack_weights();
    choose_blocks();
    const double flops = 2.0 * static_cast<double>(c_.target.numel) *
                         static_cast<double>(c_.w.size(2) * c_.w.size(3) * c_.reduced);
    const int64_t tasks = c_.target.size(0) * row_blocks_ * column_blocks_;
    const auto body = [&](int64_t begin, int64_t end) { run_blocks(begin, end); };
    if (flops < kSerialConvolutionFlops) {
      body(0, tasks);
    } else {
      parallel_for(tasks, 1, body);
    }
  }

 private:
  // Weights of `taps` taps for one vector of channels: [taps][phases][slots][lanes].
  int64_t vector_weights(int64_t taps) const {
    return taps * lanes_.phases() * lanes_.slots * lanes_.lanes;
  }

  // Calls f(vertical class, horizontal class, taps of the pairs of classes before).
  template <class F>
  void each_class(const F& f) const {
    int64_t before = 0;
    for (const AxisClass& v : c_.vertical) {
      for (const AxisClass& h : c_.horizontal) {
        f(v, h, before);
        before += static_cast<int64_t>(v.taps.size() * h.taps.size());
      }
    }
  }

  // The weights of a pair of classes: [vectors][taps][phases][slots][lanes].
  std::byte* packed(int64_t taps_before) const {
    return weights_.as<std::byte>() + lanes_.vectors() * vector_weights(taps_before) * size_;
  }

  void pack_weights() {
    dispatch_floating("conv2d", c_.w.dtype, [&]<class T>(Type<T>) {
      each_class([&](const AxisClass& v, const AxisClass& h, int64_t before) {
        const int64_t work = vector_weights(static_cast<int64_t>(v.taps.size() * h.taps.size()));
        parallel_for(lanes_.vectors(), 1 + 65536 / std::max<int64_t>(work, 1),
                     [&](int64_t begin, int64_t end) {
                       auto* target = reinterpret_cast<Compute<T>*>(packed(before));
                       for (int64_t i = begin; i < end; ++i) {
                         pack_vector<T>(v, h, i, target + i * work, work);
                       }
                     });
      });
    });
  }

  template <class T>
  void pack_vector(const AxisClass& v, const AxisClass& h, int64_t vector, Compute<T>* target,
                   int64_t count) const {
    std::fill_n(target, count, Compute<T>(0));
    const auto& [groups, reduced, produced, width, slots, lanes, step] = lanes_;
    const int64_t first = vector * step, last = std::min(first + step, lanes_.channels());
    for (int64_t o = first; o < last; ++o) {
      const int64_t group = o / produced, j = o % width;
      for (int64_t k = 0; k < width; ++k) {
        const int64_t output = o % produced - j + (j + k) % width;
        const T* w = c_.w.as<T>() + group * c_.group_stride + output * c_.produced_stride +
                     j * c_.reduced_stride;
        Compute<T>* to = target + k * lanes + (o - first);
        for (const Tap& tv : v.taps) {
          for (const Tap& th : h.taps) {
            const T* from = w + tv.kernel * c_.w.strides[2] + th.kernel * c_.w.strides[3];
            for (int64_t i = 0; i < reduced; i += width, to += slots * lanes) {
              *to = static_cast<Compute<T>>(from[i * c_.reduced_stride]);
            }
          }
        }
      }
    }
  }

  int64_t window_elements(const Range& rows, const Range& columns) const {
    const Window window = window_of(rows, columns);
    return window.rows() * window.columns() * c_.source.size(1);
  }

  // Source pixels inside the image that a block of outputs reads.
  Window window_of(const Range& rows, const Range& columns) const {
    Window window{};
    source_range(c_.vertical, rows.begin, rows.end, window.row0, window.row1);
    source_range(c_.horizontal, columns.begin, columns.end, window.column0, window.column1);
    window.row0 = std::clamp<int64_t>(window.row0, 0, c_.source.size(2));
    window.row1 = std::clamp<int64_t>(window.row1, window.row0, c_.source.size(2));
    window.column0 = std::clamp<int64_t>(window.column0, 0, c_.source.size(3));
    window.column1 = std::clamp<int64_t>(window.column1, window.column0, c_.source.size(3));
    return window;
  }

  void choose_blocks() {
    const int64_t rows = c_.target.size(2), columns = c_.target.size(3);
    const auto blocks_of = [](int64_t count, int64_t size, int64_t least) {
      return std::clamp<int64_t>(count, 1, ceil_div(size, least));
    };
    const int64_t elements = in_place_ ? 0 : window_elements({0, rows}, {0, columns});
    const int64_t wanted =
        std::max(ceil_div(elements, kWindowElements), ceil_div(kMinTasks, c_.target.size(0)));
    row_blocks_ = blocks_of(wanted, rows, kMinBlockRows);
    column_blocks_ = blocks_of(ceil_div(wanted, row_blocks_), columns, kMinBlockColumns);
  }

  void run_blocks(int64_t begin, int64_t end) const {
    int64_t pixels = 0;
    const auto block = [](int64_t i, int64_t blocks, int64_t size) {
      return Range{size * i / blocks, size * (i + 1) / blocks};
    };
    const auto rows_of = [&](int64_t i) { return block(i, row_blocks_, c_.target.size(2)); };
    const auto columns_of = [&](int64_t i) { return block(i, column_blocks_, c_.target.size(3)); };
    for (int64_t i = 0; i < row_blocks_ && !in_place_; ++i) {
      for (int64_t j = 0; j < column_blocks_; ++j) {
        const Window window = window_of(rows_of(i), columns_of(j));
        pixels = std::max(pixels, window.rows() * window.columns());
      }
    }
    const int64_t window_bytes = pixels * c_.source.size(1) * size_;
    const int64_t expanded_bytes = lanes_.is_expanded() ? pixels * lanes_.pixel() * size_ : 0;
    const int64_t row_bytes = direct_ ? 0 : c_.target.size(3) * c_.target.size(1) * size_;
    const Workspace workspace(static_cast<size_t>(window_bytes + expanded_bytes + row_bytes));
    std::byte* buffer = workspace.as<std::byte>();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t blocks = row_blocks_ * column_blocks_, place = i % blocks;
      const Block at{.image = i / blocks,
                     .rows = rows_of(place / column_blocks_),
                     .columns = columns_of(place % column_blocks_)};
      const Source source = read_source(at, buffer, buffer + window_bytes);
      run_block(at, source, buffer + window_bytes + expanded_bytes);
    }
  }

  struct Block {
    int64_t image;
    Range rows, columns;
  };
  // Pixel (0, 0) of the image is at data, which lies outside the buffer of a block that starts
  // elsewhere.
  struct Source {
    const std::byte* data;
    int64_t row0, column0;  // the pixel at data
    int64_t row_stride, column_stride;
  };

  Source read_source(const Block& block, std::byte* buffer, std::byte* expanded) const {
    if (in_place_) {
      return {c_.source.data + block.image * c_.source.strides[0] * size_, 0, 0,
              c_.source.strides[2], c_.source.strides[3]};
    }
    const Window window = window_of(block.rows, block.columns);
    const WindowData read = read_window(c_.source, compute_, block.image, 1, window, buffer);
    if (!lanes_.is_expanded()) {
      return {read.data, window.row0, window.column0, read.row_stride, read.column_stride};
    }
    const int64_t pixel = lanes_.pixel(), row = window.columns() * pixel;
    for (int64_t i = 0; i < window.rows(); ++i) {
      grouped_expand_best(GroupedExpansion{.compute = compute_,
                                           .pixels = read.data + i * read.row_stride * size_,
                                           .count = window.columns(),
                                           .pixel_step = read.column_stride,
                                           .channels = expanded_.data(),
                                           .elements = pixel,
                                           .expanded = expanded + i * row * size_});
    }
    return {expanded, window.row0, window.column0, row, pixel};
  }

  void run_block(const Block& block, const Source& source, std::byte* out) const {
    std::vector<GroupedTap> taps;
    each_class([&](const AxisClass& v, const AxisClass& h, int64_t before) {
      const Range pixels{h.index_of(block.columns.begin), h.index_of(block.columns.end)};
      const int64_t row1 = v.index_of(block.rows.end);
      for (int64_t j = v.index_of(block.rows.begin); j < row1 && pixels.size() > 0; ++j) {
        run_row({block.image, v, h, before, j}, source, pixels, out, taps);
      }
    });
  }

  // Row number `row` of a pair of classes.
  struct Row {
    int64_t image;
    const AxisClass& v;
    const AxisClass& h;
    int64_t taps_before, row;
  };

  void run_row(const Row& row, const Source& source, const Range& pixels, std::byte* out,
               std::vector<GroupedTap>& taps) const {
    const auto& [image, v, h, before, j] = row;
    const Dims& strides = c_.target.strides;
    const int64_t at = image * strides[0] + (v.first + j * v.output_step) * strides[2] +
                       (h.first + pixels.begin * h.output_step) * strides[3];
    const int64_t y_step = direct_ ? h.output_step * strides[3] : c_.target.size(1);
    const std::byte* operand = c_.epilogue.operand;
    GroupedPixels run{.compute = compute_,
                      .lanes = lanes_,
                      .rotations = rotations_.data(),
                      .x_step = h.source_step * source.column_stride,
                      .w_step = vector_weights(static_cast<int64_t>(v.taps.size() * h.taps.size())),
                      .y_step = y_step,
                      .epilogue = c_.epilogue};
    if (in_place_ && (c_.source.numel + c_.target.numel) * size_ > kFarBytes) {
      run.new_columns = std::min(h.source_step, static_cast<int64_t>(h.taps.size()));
      run.new_rows = std::min(v.source_step, static_cast<int64_t>(v.taps.size()));
      run.x_column = source.column_stride;
      run.x_row = source.row_stride;
      run.y_row = direct_ ? v.output_step * strides[2] : 0;
    }
    const Range inner = inner_pixels(h, pixels);
    for (int64_t i = pixels.begin; i < pixels.end;) {  // one by one at the sides of the image
      run.pixels = inner.begin <= i && i < inner.end ? inner.end - i : 1;
      find_taps(row, source, i, taps);
      const int64_t offset = (i - pixels.begin) * y_step * size_;
      run.taps = taps.data();
      run.tap_count = static_cast<int64_t>(taps.size());
      run.y = (direct_ ? c_.target.data + at * size_ : out) + offset;
      run.epilogue.operand = operand ? operand + at * size_ + offset : nullptr;
      grouped_pixels_best(run);
      i += run.pixels;
    }
    if (!direct_) {
      const auto size = static_cast<int64_t>(size_of(c_.target.dtype));
      copy_strided_best(StridedCopy{.source = out,
                                    .from = compute_,
                                    .to = c_.target.dtype,
                                    .source_strides = {0, c_.target.size(1), 1},
                                    .target = c_.target.data + at * size,
                                    .target_strides = {0, h.output_step * strides[3], strides[1]},
                                    .sizes = {1, pixels.size(), c_.target.size(1)}});
    }
  }

  // The pixels whose taps all lie in the image.
  Range inner_pixels(const AxisClass& h, const Range& pixels) const {
    if (h.taps.empty()) {
      return pixels;
    }
    const int64_t before = std::max<int64_t>(-h.taps.front().d, 0),
                  after = c_.source.size(3) - h.taps.back().d;
    const int64_t begin = std::clamp(ceil_div(before, h.source_step), pixels.begin, pixels.end);
    const int64_t end = after > 0 ? ceil_div(after, h.source_step) : 0;
    return {begin, std::clamp(end, begin, pixels.end)};
  }

  // The taps of pixel i of a row that lie in the image.
  void find_taps(const Row& row, const Source& source, int64_t i,
                 std::vector<GroupedTap>& taps) const {
    taps.clear();
    const int64_t phases = lanes_.phases(), channels = lanes_.channels(),
                  tap_bytes = lanes_.slots * lanes_.lanes * size_;
    const std::byte* w = packed(row.taps_before);
    for (const Tap& tv : row.v.taps) {
      const int64_t y = row.row * row.v.source_step + tv.d;
      for (const Tap& th : row.h.taps) {
        const int64_t x = i * row.h.source_step + th.d;
        const bool inside = y >= 0 && y < c_.source.size(2) && x >= 0 && x < c_.source.size(3);
        for (int64_t phase = 0; phase < phases; ++phase, w += tap_bytes) {
          if (inside) {
            const int64_t at = (y - source.row0) * source.row_stride +
                               (x - source.column0) * source.column_stride + phase * channels;
            taps.push_back({source.data + at * size_, w});
          }
        }
      }
    }
  }

  const Correlation& c_;
  const GroupedLanes& lanes_;
  const DType compute_;
  const int64_t size_;
  const bool in_place_, direct_;  // the source is read, the target is written, as it is
  const std::vector<int32_t> rotations_;
  std::vector<int32_t> expanded_;
  const Workspace weights_;
  int64_t row_blocks_ = 1, column_blocks_ = 1;
};

}  // namespace

void grouped_correlate(const Correlation& c, const GroupedLanes& lanes) {
  GroupedCorrelator(c, lanes).run();
}

}  // namespace binade::kernels
