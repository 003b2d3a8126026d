// CPU convolution, forward and backward to the data. Both are a correlation of a padded
// channels-last source with packed weights: output pixel j of a class reads source pixel j * step +
// d for every tap d, which is a run of contiguous channels. Forward has one class. Backward has
// stride x stride classes, each with the taps that hit it, so nothing is multiplied by an inserted
// zero. Every output element is one chain of additions, so threads may take any rows.
//
// Groups of few channels have their own loops (kernels/conv/grouped_internal.h), and so does the
// gradient of images that are much larger than dy or have few channels (scattered_internal.h).
//
// bf16 is multiplied in pairs of channels where kernels/gemm/gemm_pairs_internal.h says so: source
// and weights then stay bf16, and tiles round what they write.
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/conv/conv2d_correlation_internal.h>
#include <binade/kernels/conv/conv2d_taps_internal.h>
#include <binade/kernels/conv/conv2d_window_internal.h>
#include <binade/kernels/conv/grouped_internal.h>
#include <binade/kernels/conv/scattered_internal.h>
#include <binade/kernels/conv/winograd_internal.h>
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>
#include <binade/kernels/gemm/packed_epilogue_internal.h>

#include <algorithm>
#include <vector>

namespace binade::kernels {
namespace {

constexpr int64_t kWindowElements =
    64 * 1024;                     // of padded source that one step reads, at least a row
constexpr int64_t kMinTasks = 16;  // so that a single image keeps several threads busy
constexpr int64_t kMinBlockRows = 4;
constexpr int64_t kShortRow = 8, kTileImages = 14;
constexpr int64_t kGatherElements = 384 * 1024;  // of padded source of several images

int64_t pad_columns(int64_t n) { return ceil_div(n, kMaxTileWidth) * kMaxTileWidth; }

class Correlator {
 public:
  explicit Correlator(const Correlation& c)
      : c_(c),
        compute_(compute_dtype(c.target.dtype)),
        size_(static_cast<int64_t>(size_of(compute_))),
        pairs_(pairs_run(c.target.dtype) && c.reduced % 2 == 0),
        operand_(pairs_ ? c.source.dtype : compute_),
        operand_size_(static_cast<int64_t>(size_of(operand_))),
        direct_(c.target.strides[1] == 1 || c.target.size(1) == 1),
        kept_(kept_weights()),
        weights_(kept_ ? 0 : weight_elements() * operand_size_) {
    source_range(c.horizontal, 0, c.target.size(3), columns_.column0, columns_.column1);
  }

  void run() {
    if (!kept_) {
      pack_weights(weights_.as<std::byte>());
    }
    const int64_t rows = c_.target.size(2), images = c_.target.size(0);
    int64_t low, high;
    source_range(c_.vertical, 0, rows, low, high);
    const int64_t window_elements = (high - low) * columns_.columns() * c_.source.size(1);
    const int64_t by_memory = ceil_div(window_elements, kWindowElements);
    const int64_t most = ceil_div(rows, kMinBlockRows);
    const int64_t blocks =
        std::clamp<int64_t>(std::max(by_memory, ceil_div(kMinTasks, images)), 1, most);
    const int64_t step = static_cast<int64_t>(c_.vertical.size());
    block_rows_ = std::min(rows, ceil_div(ceil_div(rows, blocks), step) * step);
    blocks_ = ceil_div(rows, block_rows_);
    // If a row of pixels is too short for a tile, the rows of a tile are the same pixel of several
    // images.
    across_images_ = c_.target.size(3) / static_cast<int64_t>(c_.horizontal.size()) < kShortRow &&
                     images >= kShortRow && window_elements * 2 <= kGatherElements;
    block_images_ = 1;
    if (across_images_) {
      block_rows_ = rows;
      blocks_ = 1;
      block_images_ = std::min(
          images, std::min(kTileImages, kGatherElements / std::max<int64_t>(window_elements, 1)));
    }
    const int64_t image_blocks = ceil_div(images, block_images_);
    if (flops() < kSerialConvolutionFlops) {
      run_blocks(0, image_blocks * blocks_);
    } else {
      parallel_for(image_blocks * blocks_, 1,
                   [&](int64_t begin, int64_t end) { run_blocks(begin, end); });
    }
  }

 private:
  double flops() const {
    return 2.0 * static_cast<double>(c_.target.numel) * static_cast<double>(c_.w.numel) /
           static_cast<double>(c_.produced * c_.groups);
  }
  int64_t taps() const { return c_.w.size(2) * c_.w.size(3); }
  int64_t weight_elements() const {
    return c_.groups * taps() * c_.reduced * pad_columns(c_.produced);
  }
  // Packed weights of a pair of classes: panels whose rows are (vertical tap, horizontal tap,
  // channel).
  int64_t packed(int64_t taps_before, int64_t taps, int64_t group) const {
    return (taps_before * c_.groups + taps * group) * c_.reduced * pad_columns(c_.produced) *
           operand_size_;
  }

  // The packed weights that the caller keeps; null if it keeps none.
  const std::byte* kept_weights() {
    const int64_t columns =
        c_.groups == 1 ? whole_vectors(c_.produced, compute_) : pad_columns(c_.produced);
    return c_.packing ? c_.packing->get(taps_format(c_.groups * taps() * c_.reduced * columns,
                                                    operand_size_, pairs_),
                                        [this](std::byte* target) { pack_weights(target); })
                      : nullptr;
  }

  void pack_weights(std::byte* target) {
    int64_t before = 0;
    for (const AxisClass& v : c_.vertical) {
      for (const AxisClass& h : c_.horizontal) {
        const int64_t taps = static_cast<int64_t>(v.taps.size() * h.taps.size());
        auto pack = [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t group = i / taps, tap = i % taps,
                          across = static_cast<int64_t>(h.taps.size());
            const Tap& tv = v.taps[static_cast<size_t>(tap / across)];
            const Tap& th = h.taps[static_cast<size_t>(tap % across)];
            pack_tap(tv.kernel, th.kernel, tap, taps, group, target + packed(before, taps, group));
          }
        };
        const int64_t grain = 1 + 65536 / std::max<int64_t>(c_.reduced * c_.produced, 1);
        parallel_for(taps * c_.groups, grain, pack);
        before += taps;
      }
    }
  }

  void pack_tap(int64_t r, int64_t s, int64_t tap, int64_t taps, int64_t group, std::byte* target) {
    const int64_t offset = r * c_.w.strides[2] + s * c_.w.strides[3];
    const PanelPacking packing{.source = c_.w.data + (offset + group * c_.group_stride) *
                                                         static_cast<int64_t>(size_of(c_.w.dtype)),
                               .from = c_.w.dtype,
                               .row_stride = c_.reduced_stride,
                               .column_stride = c_.produced_stride,
                               .rows = c_.reduced,
                               .columns = c_.produced,
                               .first_row = tap * c_.reduced,
                               .total_rows = taps * c_.reduced,
                               .target = target};
    pairs_ ? avx512_bf16::pack_panels_pairs(packing) : pack_panels_best(packing);
  }

  void run_blocks(int64_t begin, int64_t end) {
    int64_t low, high, window_elements = 0;
    for (int64_t block = 0; block < blocks_; ++block) {
      source_range(c_.vertical, block * block_rows_,
                   std::min(c_.target.size(2), (block + 1) * block_rows_), low, high);
      window_elements =
          std::max(window_elements, (high - low) * columns_.columns() * c_.source.size(1));
    }
    const int64_t window_bytes = ceil_div(window_elements * block_images_, 32) * 32 * operand_size_;
    const int64_t row_elements = direct_ ? 0 : block_images_ * c_.target.size(3) * c_.produced;
    const Workspace workspace(window_bytes + block_rows_ * row_elements * size_);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / blocks_ * block_images_, row0 = i % blocks_ * block_rows_;
      run_block({image, std::min(block_images_, c_.target.size(0) - image), row0,
                 std::min(row0 + block_rows_, c_.target.size(2))},
                workspace.as<std::byte>(), workspace.as<std::byte>() + window_bytes);
    }
  }

  struct Block {
    int64_t image, images, row0, row1;
  };
  struct Classes {
    const AxisClass& vertical;
    const AxisClass& horizontal;
  };

  void run_block(const Block& block, std::byte* buffer, std::byte* out) {
    Window window = columns_;
    source_range(c_.vertical, block.row0, block.row1, window.row0, window.row1);
    const WindowData source = read_source_window(block, window, buffer);
    int64_t before = 0;
    for (const AxisClass& v : c_.vertical) {
      for (const AxisClass& h : c_.horizontal) {
        const int64_t taps = static_cast<int64_t>(v.taps.size() * h.taps.size());
        const int64_t row0 = v.index_of(block.row0), row1 = v.index_of(block.row1);
        for (int64_t group = 0; group < c_.groups && row0 < row1; ++group) {
          TileGrid grid{.compute = compute_, .columns = c_.produced};
          read_source({v, h}, window, source, row0, group, grid);
          grid.b = (kept_ ? kept_ : weights_.as<std::byte>()) + packed(before, taps, group);
          grid.epilogue = c_.epilogue.at(0, group * c_.produced, size_);
          run_class({v, h}, block, {group, row0, row1 - row0}, source, grid, out);
        }
        before += taps;
      }
    }
  }

  // Pairs are read in place only if every pixel begins with a whole pair.
  WindowData read_source_window(const Block& block, const Window& window, std::byte* buffer) const {
    const Dims& s = c_.source.strides;
    const bool whole = s[0] % 2 == 0 && s[2] % 2 == 0 && s[3] % 2 == 0;
    return pairs_ && !whole
               ? copy_window(c_.source, operand_, block.image, block.images, window, buffer)
               : read_window(c_.source, operand_, block.image, block.images, window, buffer);
  }

  struct Rows {
    int64_t group, first, count;  // counted in a class
  };

  // Runs the grid over images, rows and pixels; the rows of its tiles are pixels or images.
  void run_class(const Classes& classes, const Block& block, const Rows& rows,
                 const WindowData& source, TileGrid& grid, std::byte* out) {
    const auto& [v, h] = classes;
    const Dims& strides = c_.target.strides;
    const int64_t pixels = h.index_of(c_.target.size(3));
    const int64_t at = block.image * strides[0] + rows.group * c_.produced * strides[1] +
                       (v.first + rows.first * v.output_step) * strides[2] + h.first * strides[3];
    std::byte* y = c_.target.data + at * static_cast<int64_t>(size_of(c_.target.dtype));
    const int64_t y_strides[3] = {strides[0], v.output_step * strides[2],
                                  h.output_step * strides[3]};
    const int64_t dense[3] = {rows.count * pixels * c_.produced, pixels * c_.produced, c_.produced};
    const int64_t a_strides[3] = {source.image_stride, v.source_step * source.row_stride,
                                  h.source_step * source.column_stride};
    const int64_t sizes[3] = {block.images, rows.count, pixels};
    const int64_t* c_strides = direct_ ? y_strides : dense;
    const int tiled = across_images_ ? 0 : 2,
              outer[2] = {across_images_ ? 1 : 0, across_images_ ? 2 : 1};
    grid.rows = sizes[tiled];
    grid.sum.a_row = a_strides[tiled];
    grid.c_row = c_strides[tiled];
    for (int i = 0; i < 2; ++i) {
      grid.outer[i] = sizes[outer[i]];
      grid.a_outer[i] = a_strides[outer[i]];
      grid.c_outer[i] = c_strides[outer[i]];
    }
    grid.c = direct_ ? y : out;
    const std::byte* operand = c_.epilogue.operand;
    grid.epilogue.operand = operand ? operand + (y - c_.target.data) : nullptr;
    grid.epilogue.rounded = direct_ ? rounded_to(c_.target.dtype) : Rounded::no;
    if (pairs_) {
      count_pairs(grid);
      tile_grid_pairs_best(grid);
    } else {
      tile_grid_best(grid);
    }
    for (int64_t image = 0; image < block.images && !direct_; ++image) {
      copy_strided_best(StridedCopy{
          .source = out + image * dense[0] * size_,
          .from = compute_,
          .to = c_.target.dtype,
          .source_strides = {dense[1], dense[2], 1},
          .target = y + image * strides[0] * static_cast<int64_t>(size_of(c_.target.dtype)),
          .target_strides = {y_strides[1], y_strides[2], strides[1]},
          .sizes = {rows.count, pixels, c_.produced}});
    }
  }

  // Converts counts of elements to counts of pairs. The offsets from read_source count pairs
  // already.
  static void count_pairs(TileGrid& grid) {
    grid.sum.a_row /= 2;
    grid.a_outer[0] /= 2;
    grid.a_outer[1] /= 2;
    grid.sum.length /= 2;
  }

  // Finds the runs of channels that the first output pixel of a class row reads. Neighbouring taps
  // form one run if their pixels are adjacent in memory.
  void read_source(const Classes& classes, const Window& window, const WindowData& source,
                   int64_t row0, int64_t group, TileGrid& grid) {
    const auto& [v, h] = classes;
    static thread_local std::vector<int64_t> offsets;
    offsets.clear();
    bool touching = c_.groups == 1 && source.column_stride == c_.reduced;
    for (size_t i = 1; i < h.taps.size(); ++i) {
      touching = touching && h.taps[i].d == h.taps[i - 1].d + 1;
    }
    const size_t run = touching ? h.taps.size() : 1;
    const int64_t row = row0 * v.source_step - window.row0;
    for (const Tap& tv : v.taps) {
      for (size_t i = 0; i < h.taps.size(); i += run) {
        const int64_t offset = (row + tv.d) * source.row_stride + group * c_.reduced +
                               (h.taps[i].d - window.column0) * source.column_stride;
        offsets.push_back(pairs_ ? offset / 2 : offset);
      }
    }
    grid.a = source.data;
    grid.sum.offsets = offsets.data();
    grid.sum.segments = static_cast<int64_t>(offsets.size());
    grid.sum.length = static_cast<int64_t>(run) * c_.reduced;
  }

  const Correlation& c_;
  const DType compute_;
  const int64_t size_;
  const bool pairs_;
  const DType operand_;  // of source and weights in tiles
  const int64_t operand_size_;
  const bool direct_;  // tiles write the target
  const std::byte* const kept_;
  const Workspace weights_;
  Window columns_{};
  bool across_images_ = false;
  int64_t block_images_ = 1, block_rows_ = 0, blocks_ = 0;
};

void correlate(const Correlation& c) {
  if (c.groups > 1 && c.reduced > 0) {
    const GroupedLanes lanes =
        grouped_lanes(compute_dtype(c.target.dtype), c.groups, c.reduced, c.produced);
    if (grouped_pays(lanes)) {
      grouped_correlate(c, lanes);
      return;
    }
  }
  Correlator(c).run();
}

}  // namespace

void cpu::conv2d_forward(const Conv2dForward& a) {
  const Conv2dSizes size = checked_sizes(a);
  if (a.y.numel == 0) {
    return;
  }
  if (winograd_runs(a.y.dtype, size, a.geometry, Conv2dPass::forward)) {
    winograd_forward(a);
    return;
  }
  const PackedEpilogue epilogue(a.epilogue);
  const Correlation correlation{.source = a.x,
                                .target = a.y,
                                .w = a.w,
                                .groups = size.groups,
                                .reduced = size.group_c,
                                .produced = size.group_o,
                                .reduced_stride = a.w.strides[1],
                                .produced_stride = a.w.strides[0],
                                .group_stride = size.group_o * a.w.strides[0],
                                .vertical = forward_axis(a.geometry, 0, size.r),
                                .horizontal = forward_axis(a.geometry, 1, size.s),
                                .epilogue = epilogue.tile(),
                                .packing = a.packing};
  correlate(correlation);
}

void cpu::conv2d_backward_data(const Conv2dBackwardData& a) {
  const Conv2dSizes size = checked_sizes(a);
  if (a.dx.numel == 0) {
    return;
  }
  if (winograd_runs(a.dx.dtype, size, a.geometry, Conv2dPass::backward_data)) {
    winograd_backward_data(a);
    return;
  }
  if (scattered_pays(a.dx.dtype, size, a.geometry)) {
    scattered_backward_data(a, size);
    return;
  }
  const PackedEpilogue epilogue({.bias = a.bias});
  const Correlation correlation{.source = a.dy,
                                .target = a.dx,
                                .w = a.w,
                                .groups = size.groups,
                                .reduced = size.group_o,
                                .produced = size.group_c,
                                .reduced_stride = a.w.strides[0],
                                .produced_stride = a.w.strides[1],
                                .group_stride = size.group_o * a.w.strides[0],
                                .vertical = backward_axis(a.geometry, 0, size.r, size.h),
                                .horizontal = backward_axis(a.geometry, 1, size.s, size.w),
                                .epilogue = epilogue.tile()};
  correlate(correlation);
}

}  // namespace binade::kernels
