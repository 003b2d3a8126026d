// CPU convolution, backward to the weight: dw[r, s, c][o] = sum over pixels of x[pixel(r, s)][c]
// dy[o], a product of the transposed padded image with packed dy that sums over pixels. The images
// are split into partial sums whose number depends on the shape only; the partial sums are added in
// order. Where bf16 is multiplied in pairs (kernels/gemm/gemm_pairs_internal.h), a pair is the same
// pixel of two images, for any kernel and stride; an odd last image is paired with zeros.
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/conv/conv2d_window_internal.h>
#include <binade/kernels/conv/grouped_internal.h>
#include <binade/kernels/conv/winograd_internal.h>
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>

#include <algorithm>
#include <vector>

namespace binade::kernels {
namespace {

constexpr int64_t kMaxPartials = 8;
constexpr int64_t kPartialElements = 1 << 20;  // of all partial sums together, or a single one
constexpr int64_t kChunkElements =
    128 * 1024;  // of padded x and packed dy that tiles read repeatedly
constexpr int64_t kGatherElements = 384 * 1024;  // the same where small images are gathered
constexpr int64_t kChunkPixels = 512;  // pixels that a chunk of small images gathers, to reuse sums
constexpr int64_t kFewRows = 64;       // of dw as [r s c, o]

class WeightGradient {
 public:
  WeightGradient(const Conv2dBackwardWeight& a, const Conv2dSizes& size)
      : a_(a),
        d_(size),
        compute_(compute_dtype(a.dw.dtype)),
        size_(static_cast<int64_t>(size_of(compute_))),
        per_unit_(pairs_run(a.dw.dtype) && size.n > 1 ? 2 : 1),
        pitch_(ceil_div(size.group_o, kMaxTileWidth) * kMaxTileWidth),
        dw_elements_(size.groups * size.r * size.s * size.group_c * pitch_) {
    const int64_t stride = a.geometry.stride[1], padding = a.geometry.padding[1];
    window_.column0 = -padding;
    window_.column1 = (d_.q - 1) * stride - padding + a.geometry.dilation[1] * (d_.s - 1) + 1;
    choose_split();
  }

  void run() {
    const Workspace partials(partials_ * dw_elements_ * size_);
    auto body = [&](int64_t begin, int64_t end) {
      while (begin < end) {  // a range of parts of one partial sum at a time
        const int64_t partial = begin / parts_, part0 = begin % parts_;
        const int64_t part1 = std::min(parts_, part0 + end - begin);
        const int64_t panels = ceil_div(d_.group_o, kMaxTileWidth);
        accumulate(partial, panels * part0 / parts_ * kMaxTileWidth,
                   std::min(panels * part1 / parts_ * kMaxTileWidth, d_.group_o),
                   partials.as<std::byte>() + partial * dw_elements_ * size_);
        begin += part1 - part0;
      }
    };
    const double flops = 2.0 * static_cast<double>(a_.dy.numel) * static_cast<double>(a_.dw.numel) /
                         static_cast<double>(d_.o);
    if (flops < kSerialConvolutionFlops) {
      body(0, partials_ * parts_);
      store(partials, 0, d_.groups * d_.r * d_.s);
    } else {
      parallel_for(partials_ * parts_, 1, body);
      parallel_for(d_.groups * d_.r * d_.s, 1 + 16384 / (d_.group_c * pitch_),
                   [&](int64_t begin, int64_t end) { store(partials, begin, end); });
    }
  }

 private:
  int64_t window_rows(int64_t output_rows) const {
    return (output_rows - 1) * a_.geometry.stride[0] + a_.geometry.dilation[0] * (d_.r - 1) + 1;
  }

  void choose_split() {
    partials_ =
        std::clamp<int64_t>(kPartialElements / dw_elements_, 1, std::min(kMaxPartials, d_.n));
    const int64_t panels = ceil_div(d_.group_o, kMaxTileWidth);
    parts_ = d_.groups == 1 ? std::min(panels, ceil_div(kMaxPartials, partials_)) : 1;
    const int64_t x_row = window_.columns() * d_.c, dy_row = d_.q * d_.groups * pitch_;
    const int64_t image = window_rows(d_.p) * x_row + d_.p * dy_row;
    chunk_rows_ = d_.p;
    chunk_images_ = 1;
    if (image > kChunkElements) {
      const int64_t per_row = a_.geometry.stride[0] * x_row + dy_row;
      chunk_rows_ = std::clamp<int64_t>(kChunkElements / per_row, 1, d_.p);
    } else {
      chunk_images_ = std::min(kGatherElements / image, ceil_div(kChunkPixels, d_.p * d_.q));
    }
  }

  bool pairs() const { return per_unit_ == 2; }

  // Adds images of one partial into `sum` for the output channels [o0, o1) of every group.
  void accumulate(int64_t partial, int64_t o0, int64_t o1, std::byte* sum) {
    const int64_t first = d_.n * partial / partials_, last = d_.n * (partial + 1) / partials_;
    const int64_t x_elements = chunk_images_ * window_rows(chunk_rows_) * window_.columns() * d_.c;
    const int64_t x_bytes = ceil_div(x_elements, 16) * 16 * size_;
    const int64_t dy_bytes = chunk_images_ * chunk_rows_ * d_.q * pitch_ * size_;
    const Workspace workspace(x_bytes + dy_bytes + (pairs() ? x_bytes : 0));
    const int64_t step = chunk_images_ * per_unit_;
    bool fresh = true;
    for (int64_t image = first; image < last; image += step) {
      const int64_t images = std::min(step, last - image);
      for (int64_t row = 0; row < d_.p; row += chunk_rows_) {
        const Chunk chunk{image, images, row, std::min(chunk_rows_, d_.p - row)};
        Window window = window_;
        window.row0 = row * a_.geometry.stride[0] - a_.geometry.padding[0];
        window.row1 = window.row0 + window_rows(chunk.rows);
        const WindowData x = read_x(chunk, window, workspace.as<std::byte>(),
                                    workspace.as<std::byte>() + x_bytes + dy_bytes);
        for (int64_t group = 0; group < d_.groups; ++group) {
          std::byte* packed = workspace.as<std::byte>() + x_bytes;
          multiply(chunk, x, {group, o0, o1}, packed, sum, !fresh);
        }
        fresh = false;
      }
    }
  }

  struct Chunk {
    int64_t image, images, row, rows;
  };
  // The sum runs over images or pairs of images.
  int64_t units(const Chunk& chunk) const { return ceil_div(chunk.images, per_unit_); }

  // Copies even if x could be read in place: tiles read it in steps of a pixel, which is fast only
  // from a near cache.
  WindowData read_x(const Chunk& chunk, const Window& window, std::byte* target,
                    std::byte* images) const {
    if (!pairs()) {
      return copy_window(a_.x, compute_, chunk.image, chunk.images, window, target);
    }
    WindowData x = copy_window(a_.x, a_.x.dtype, chunk.image, chunk.images, window, images);
    const int64_t bytes = x.image_stride * static_cast<int64_t>(size_of(a_.x.dtype));
    for (int64_t i = 0; i < chunk.images; i += 2) {
      avx512_bf16::join_pairs(
          PairJoin{.even = x.data + i * bytes,
                   .odd = i + 1 < chunk.images ? x.data + (i + 1) * bytes : nullptr,
                   .columns = x.image_stride,
                   .target = target + i / 2 * x.image_stride * size_});
    }
    x.data = target;
    return x;
  }

  void pack_dy(const Chunk& chunk, int64_t o, int64_t columns, std::byte* target) {
    const View& dy = a_.dy;
    const bool dense = dy.strides[2] == d_.q * dy.strides[3];  // rows follow each other like pixels
    const int64_t runs = dense ? 1 : chunk.rows, length = dense ? chunk.rows * d_.q : d_.q;
    const auto element = static_cast<int64_t>(size_of(dy.dtype));
    for (int64_t unit = 0; unit < units(chunk); ++unit) {
      const int64_t image = unit * per_unit_;
      for (int64_t run = 0; run < runs; ++run) {
        const int64_t at = (chunk.image + image) * dy.strides[0] + o * dy.strides[1] +
                           (chunk.row + run) * dy.strides[2];
        const int64_t first_row = (unit * runs + run) * length;
        const int64_t total_rows = units(chunk) * chunk.rows * d_.q;
        if (pairs()) {
          const bool both = image + 1 < chunk.images;
          avx512_bf16::join_pairs(
              PairJoin{.even = dy.data + at * element,
                       .odd = both ? dy.data + (at + dy.strides[0]) * element : nullptr,
                       .row_stride = dy.strides[3],
                       .column_stride = dy.strides[1],
                       .rows = length,
                       .columns = columns,
                       .in_panels = true,
                       .first_row = first_row,
                       .total_rows = total_rows,
                       .target = target});
          continue;
        }
        pack_panels_best(PanelPacking{.source = dy.data + at * element,
                                      .from = dy.dtype,
                                      .row_stride = dy.strides[3],
                                      .column_stride = dy.strides[1],
                                      .rows = length,
                                      .columns = columns,
                                      .first_row = first_row,
                                      .total_rows = total_rows,
                                      .target = target});
      }
    }
  }

  struct OutputChannels {
    int64_t group, begin, end;  // of the group's
  };

  void multiply(const Chunk& chunk, const WindowData& x, const OutputChannels& channels,
                std::byte* packed, std::byte* sum, bool add) {
    const auto [group, o0, o1] = channels;
    std::vector<int64_t> offsets;
    for (int64_t unit = 0; unit < units(chunk); ++unit) {
      for (int64_t row = 0; row < chunk.rows; ++row) {
        offsets.push_back(unit * x.image_stride + row * a_.geometry.stride[0] * x.row_stride);
      }
    }
    // Neighbouring taps of a kernel row are one run of channels if their pixels are adjacent in
    // memory.
    const bool touching = d_.groups == 1 && a_.geometry.dilation[1] == 1 && x.column_stride == d_.c;
    TileGrid grid{.compute = compute_,
                  .outer = {d_.r, touching ? 1 : d_.s},
                  .rows = touching ? d_.s * d_.c : d_.group_c,
                  .columns = o1 - o0,
                  .a = x.data + group * d_.group_c * size_,
                  .a_outer = {a_.geometry.dilation[0] * x.row_stride,
                              a_.geometry.dilation[1] * x.column_stride},
                  .sum = {.a_row = 1,
                          .a_step = a_.geometry.stride[1] * x.column_stride,
                          .offsets = offsets.data(),
                          .segments = static_cast<int64_t>(offsets.size()),
                          .length = d_.q},
                  .b = packed,
                  .c = sum + (group * d_.r * d_.s * d_.group_c * pitch_ + o0) * size_,
                  .c_outer = {d_.s * d_.group_c * pitch_, d_.group_c * pitch_},
                  .c_row = pitch_,
                  .epilogue = {.accumulate = add}};
    if (dy_in_place(o1 - o0)) {
      grid.b = a_.dy.data + ((chunk.image * d_.p + chunk.row) * d_.q * a_.dy.strides[3] +
                             group * d_.group_o + o0) *
                                size_;
      grid.b_step = a_.dy.strides[3];
    } else {
      pack_dy(chunk, group * d_.group_o + o0, o1 - o0, packed);
    }
    pairs() ? tile_grid_pairs_best(grid) : tile_grid_best(grid);
  }

  // If only one or two tiles read dy, packing it costs more than it saves.
  bool dy_in_place(int64_t columns) const {
    const Dims& strides = a_.dy.strides;
    return compute_ == a_.dy.dtype && columns % kMaxTileWidth == 0 &&
           d_.r * d_.s * d_.group_c <= kFewRows && strides[1] == 1 &&
           strides[2] == d_.q * strides[3] && strides[0] == d_.p * strides[2];
  }

  // Adds the partials of kernel positions [begin, end), counted over (group, r, s), and writes dw.
  void store(const Workspace& partials, int64_t begin, int64_t end) {
    const int64_t position = d_.group_c * pitch_;
    for (int64_t i = begin; i < end; ++i) {
      if (compute_ == DType::f64) {
        add_partials(partials.as<double>() + i * position, position);
      } else {
        add_partials(partials.as<float>() + i * position, position);
      }
      const Dims& strides = a_.dw.strides;
      const int64_t group = i / (d_.r * d_.s), r = i / d_.s % d_.r, s = i % d_.s;
      const int64_t at = group * d_.group_o * strides[0] + r * strides[2] + s * strides[3];
      copy_strided_best(
          StridedCopy{.source = partials.as<std::byte>() + i * position * size_,
                      .from = compute_,
                      .to = a_.dw.dtype,
                      .source_strides = {0, pitch_, 1},
                      .target = a_.dw.data + at * static_cast<int64_t>(size_of(a_.dw.dtype)),
                      .target_strides = {0, strides[1], strides[0]},
                      .sizes = {1, d_.group_c, d_.group_o}});
    }
  }

  template <class T>
  void add_partials(T* sum, int64_t count) const {
    for (int64_t partial = 1; partial < partials_; ++partial) {
      const T* other = sum + partial * dw_elements_;
      for (int64_t i = 0; i < count; ++i) {
        sum[i] += other[i];
      }
    }
  }

  const Conv2dBackwardWeight& a_;
  const Conv2dSizes& d_;
  const DType compute_;
  const int64_t size_;      // of an element of the compute dtype, and of a pair
  const int64_t per_unit_;  // images: 2 where they are multiplied in pairs
  const int64_t pitch_, dw_elements_;
  Window window_{};
  int64_t partials_ = 1, parts_ = 1, chunk_rows_ = 1, chunk_images_ = 1;
};

void zero_fill(const View& view) {
  std::vector<int64_t> at(4, 0);
  const std::vector<std::byte> zero(size_of(view.dtype));
  for (int64_t i = 0; i < view.numel; ++i) {
    int64_t rest = i, offset = 0;
    for (int d = 3; d >= 0; --d) {
      offset += rest % view.size(d) * view.strides[d];
      rest /= view.size(d);
    }
    std::copy(zero.begin(), zero.end(), view.data + offset * static_cast<int64_t>(zero.size()));
  }
}

}  // namespace

void cpu::conv2d_backward_weight(const Conv2dBackwardWeight& a) {
  const Conv2dSizes size = checked_sizes(a);
  if (a.dw.numel == 0) {
    return;
  }
  if (a.dy.numel == 0) {  // no images
    zero_fill(a.dw);
    return;
  }
  if (winograd_runs(a.dw.dtype, size, a.geometry, Conv2dPass::backward_weight)) {
    winograd_backward_weight(a);
    return;
  }
  const GroupedLanes lanes =
      grouped_lanes(compute_dtype(a.dw.dtype), size.groups, size.group_c, size.group_o);
  if (grouped_pays(lanes)) {
    grouped_backward_weight(a, size, lanes);
    return;
  }
  WeightGradient(a, size).run();
}

}  // namespace binade::kernels
