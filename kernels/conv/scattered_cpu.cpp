// Backward to the data as a product and a sum on the CPU (scattered_internal.h). A block of images
// is multiplied, then each row of dx adds its columns in the order of r, q and s: one thread writes
// a row, so bits do not depend on the threads.
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/conv/conv2d_axis_internal.h>
#include <binade/kernels/conv/conv2d_window_internal.h>
#include <binade/kernels/conv/scattered_internal.h>
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>
#include <binade/kernels/gemm/packed_epilogue_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int64_t kColumnElements = 512 * 1024;  // of a block of images
constexpr int64_t kMinProductRows = 512;         // so that packing w costs little
constexpr int64_t kRowsElements = 16 * 1024;     // of dx, a thread's least share
constexpr double kColumnCost = 16;               // multiplications of a lane

// Pairs of a pixel of dx and a tap that the correlation multiplies along one axis.
int64_t pairs_along(const Conv2dGeometry& g, int axis, int64_t kernel, int64_t size) {
  int64_t pairs = 0;
  for (const AxisClass& one : backward_axis(g, axis, kernel, size)) {
    pairs += one.index_of(size) * static_cast<int64_t>(one.taps.size());
  }
  return pairs;
}

class ScatteredProduct {
 public:
  ScatteredProduct(const Conv2dBackwardData& a, const Conv2dSizes& size)
      : a_(a),
        d_(size),
        compute_(compute_dtype(a.dx.dtype)),
        size_(static_cast<int64_t>(size_of(compute_))),
        columns_(size.r * size.s * size.c),
        width_(std::max(
            size.w + a.geometry.padding[1],
            (size.q - 1) * a.geometry.stride[1] + a.geometry.dilation[1] * (size.s - 1) + 1)),
        epilogue_({.bias = a.bias}),
        weights_(static_cast<size_t>(size.o * columns_ * size_)) {}

  void run() {
    pack_weights();
    const int64_t pixels = d_.p * d_.q;
    const int64_t rows = std::max(kColumnElements / columns_, kMinProductRows);
    const int64_t most = std::clamp<int64_t>(rows / pixels, 1, d_.n);
    const Workspace dy(static_cast<size_t>(most * pixels * d_.o * size_)),
        columns(static_cast<size_t>(most * pixels * columns_ * size_));
    for (int64_t image = 0; image < d_.n; image += most) {
      const int64_t images = std::min(most, d_.n - image);
      multiply(image, images, dy.as<std::byte>(), columns.as<std::byte>());
      const int64_t grain = 1 + kRowsElements / (width_ * d_.c);
      parallel_for(images * d_.h, grain, [&](int64_t begin, int64_t end) {
        const Workspace row(static_cast<size_t>(width_ * d_.c * size_));
        for (int64_t i = begin; i < end; ++i) {
          const std::byte* from = columns.as<std::byte>() + i / d_.h * pixels * columns_ * size_;
          const bool is_double = compute_ == DType::f64;
          is_double ? write_row<double>(from, image + i / d_.h, i % d_.h, row.as<double>())
                    : write_row<float>(from, image + i / d_.h, i % d_.h, row.as<float>());
        }
      });
    }
  }

 private:
  void pack_weights() {  // [O, R, S, C]
    const Dims& strides = a_.w.strides;
    for (int64_t r = 0; r < d_.r; ++r) {
      copy_strided_best(StridedCopy{
          .source = a_.w.data + r * strides[2] * static_cast<int64_t>(size_of(a_.w.dtype)),
          .from = a_.w.dtype,
          .to = compute_,
          .source_strides = {strides[0], strides[3], strides[1]},
          .target = weights_.as<std::byte>() + r * d_.s * d_.c * size_,
          .target_strides = {columns_, d_.c, 1},
          .sizes = {d_.o, d_.s, d_.c}});
    }
  }

  void multiply(int64_t image, int64_t images, std::byte* buffer, std::byte* columns) const {
    const WindowData dy = copy_window(a_.dy, compute_, image, images, {0, d_.p, 0, d_.q}, buffer);
    const int64_t rows = images * d_.p * d_.q;
    cpu::gemm({.a = view_of(const_cast<std::byte*>(dy.data), compute_, {rows, d_.o}),
               .b = view_of(weights_.as<std::byte>(), compute_, {d_.o, columns_}),
               .y = view_of(columns, compute_, {rows, columns_})});
  }

  // Row h of an image of dx; `columns` are the image's [P, Q, R, S, C].
  template <class T>
  void write_row(const std::byte* columns, int64_t image, int64_t h, T* row) const {
    const Conv2dGeometry& g = a_.geometry;
    std::fill_n(row, width_ * d_.c, T(0));
    for (int64_t r = 0; r < d_.r; ++r) {
      const int64_t place = h + g.padding[0] - r * g.dilation[0], p = place / g.stride[0];
      if (place >= 0 && place % g.stride[0] == 0 && p < d_.p) {
        add_columns(reinterpret_cast<const T*>(columns) + (p * d_.q * d_.r + r) * d_.s * d_.c, row);
      }
    }
    T* inside = row + g.padding[1] * d_.c;
    if (const auto* bias = reinterpret_cast<const T*>(epilogue_.tile().bias)) {
      for (int64_t i = 0; i < d_.w; ++i) {
        for (int64_t c = 0; c < d_.c; ++c) {
          inside[i * d_.c + c] += bias[c];
        }
      }
    }
    const Dims& strides = a_.dx.strides;
    const int64_t at = image * strides[0] + h * strides[2];
    copy_strided_best(
        StridedCopy{.source = inside,
                    .from = compute_,
                    .to = a_.dx.dtype,
                    .source_strides = {0, d_.c, 1},
                    .target = a_.dx.data + at * static_cast<int64_t>(size_of(a_.dx.dtype)),
                    .target_strides = {0, strides[3], strides[1]},
                    .sizes = {1, d_.w, d_.c}});
  }

  // Adds the columns of one row of dy and one row of the kernel; neighbouring taps of a pixel are
  // one run if their pixels are adjacent.
  template <class T>
  void add_columns(const T* columns, T* row) const {
    const bool touching = a_.geometry.dilation[1] == 1;
    const int64_t runs = touching ? 1 : d_.s, length = touching ? d_.s * d_.c : d_.c;
    for (int64_t q = 0; q < d_.q; ++q, columns += columns_) {
      for (int64_t s = 0; s < runs; ++s) {
        T* to = row + (q * a_.geometry.stride[1] + s * a_.geometry.dilation[1]) * d_.c;
        const T* from = columns + s * length;
        for (int64_t i = 0; i < length; ++i) {
          to[i] += from[i];
        }
      }
    }
  }

  const Conv2dBackwardData& a_;
  const Conv2dSizes& d_;
  const DType compute_;
  const int64_t size_;
  const int64_t columns_;  // of a pixel of dy: R * S * C
  const int64_t width_;    // of a row of dx with its padding
  const PackedEpilogue epilogue_;
  const Workspace weights_;
};

}  // namespace

bool scattered_pays(DType dtype, const Conv2dSizes& d, const Conv2dGeometry& g) {
  if (d.groups != 1 || d.p * d.q == 0 || d.n == 0 || d.o == 0) {
    return false;
  }
  TileSet<float> f32;
  TileSet<double> f64;
  tile_sets_best(f32, f64);
  const int64_t lanes = compute_dtype(dtype) == DType::f64 ? f64.lanes : f32.lanes;
  const auto vectors = [&](int64_t columns) {
    return static_cast<double>(ceil_div(columns, lanes) * lanes);
  };
  const auto pixels = static_cast<double>(d.p * d.q), reduced = static_cast<double>(d.o);
  const int64_t columns = d.r * d.s * d.c;
  const double speed = amx_runs(dtype) ? 8 : pairs_run(dtype) ? 2 : 1;  // this product is in f32
  const double correlation = static_cast<double>(pairs_along(g, 0, d.r, d.h)) *
                             static_cast<double>(pairs_along(g, 1, d.s, d.w)) * reduced *
                             vectors(d.c);
  const double scattered =
      pixels * (reduced * vectors(columns) + kColumnCost * static_cast<double>(columns));
  return 3 * scattered * speed < 2 * correlation;
}

void scattered_backward_data(const Conv2dBackwardData& a, const Conv2dSizes& size) {
  ScatteredProduct(a, size).run();
}

}  // namespace binade::kernels
