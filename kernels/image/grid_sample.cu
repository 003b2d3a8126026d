// CUDA grid_sample. Forward: a thread per element of the result, in its memory order. The gradient
// of the grid: a thread per position. The gradient of the image: the parts of all positions, four
// of each, are sorted by pixel and added up (cuda/sorted_sums.cuh), so that sums have a fixed
// order.
#include <binade/kernels/image/grid_sample_internal.h>
#include <binade/kernels/cuda/sorted_sums.cuh>
#include <binade/kernels/cuda/vector.cuh>
#include <binade/kernels/image/image_index.cuh>

#include <bit>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

template <class T>
struct Image {
  T* data;
  int64_t stride[4];

  explicit Image(const View& view) : data(view.as<T>()), stride{} {
    for (int d = 0; d < view.dim() && d < 4; ++d) {
      stride[d] = view.strides[d];
    }
  }
  __device__ T* at(int64_t a, int64_t b, int64_t c, int64_t d) const {
    return data + a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3];
  }
};

template <class T>
struct Positions {
  Image<const T> grid;  // [N, P, Q, 2]
  GridAxis vertical, horizontal;

  explicit Positions(const View& grid_, const View& x, const GridRule& rule)
      : grid(grid_), vertical{x.size(2), rule}, horizontal{x.size(3), rule} {}
  __device__ GridPosition<Compute<T>> at(int64_t n, int64_t p, int64_t q) const {
    using C = Compute<T>;
    const T* place = grid.at(n, p, q, 0);
    return {vertical.at(static_cast<C>(place[grid.stride[3]])),
            horizontal.at(static_cast<C>(*place))};
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    grid_sample_forward_kernel(const __grid_constant__ ImageIndex out,
                               const __grid_constant__ Image<const T> x,
                               const __grid_constant__ Positions<T> positions) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < out.numel();
       i += threads) {
    int64_t at[4] = {};
    out.place_of(i, at);
    const auto value = positions.at(at[0], at[2], at[3]).value([&](int64_t row, int64_t column) {
      return static_cast<Compute<T>>(*x.at(at[0], at[1], row, column));
    });
    *out.element<T>(i) = static_cast<T>(value);
  }
}

struct Sizes {
  int64_t images, channels, rows, columns;  // of the grid
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    grid_sample_grid_kernel(const __grid_constant__ Sizes sizes,
                            const __grid_constant__ Image<const T> x,
                            const __grid_constant__ Image<const T> dy,
                            const __grid_constant__ Image<T> dgrid,
                            const __grid_constant__ Positions<T> positions) {
  using C = Compute<T>;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads,
                count = sizes.images * sizes.rows * sizes.columns;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += threads) {
    const int64_t line = i / sizes.columns, q = i - line * sizes.columns;
    const int64_t n = line / sizes.rows, p = line - n * sizes.rows;
    const GridPosition<C> position = positions.at(n, p, q);
    C vertical = 0, horizontal = 0;
    if (position.row.slope != C(0) || position.column.slope != C(0)) {
      for (int64_t c = 0; c < sizes.channels; ++c) {
        position.add_slopes(
            [&](int64_t row, int64_t column) { return static_cast<C>(*x.at(n, c, row, column)); },
            static_cast<C>(*dy.at(n, c, p, q)), vertical, horizontal);
      }
    }
    *dgrid.at(n, p, q, 0) = static_cast<T>(scaled_slope(horizontal, position.column.slope));
    *dgrid.at(n, p, q, 1) = static_cast<T>(scaled_slope(vertical, position.row.slope));
  }
}

// A corner of a position: where dy lies, and how much of it the corner gets.
template <class C>
struct Part {
  int64_t dy;
  C weight;
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    grid_sample_parts_kernel(const __grid_constant__ Sizes sizes,
                             const __grid_constant__ Image<const T> dy,
                             const __grid_constant__ Positions<T> positions, int64_t* keys,
                             Part<Compute<T>>* parts, int64_t targets) {
  using C = Compute<T>;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads,
                count = sizes.images * sizes.rows * sizes.columns;
  const int64_t height = positions.vertical.size, width = positions.horizontal.size;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += threads) {
    const int64_t line = i / sizes.columns, q = i - line * sizes.columns;
    const int64_t n = line / sizes.rows, p = line - n * sizes.rows;
    const GridPosition<C> position = positions.at(n, p, q);
    for (int k = 0; k < 4; ++k) {
      const C weight = position.part(k);
      const int64_t pixel = (n * height + position.row_of(k)) * width + position.column_of(k);
      keys[i * 4 + k] = weight != C(0) ? pixel : targets;
      parts[i * 4 + k] = {n * dy.stride[0] + p * dy.stride[2] + q * dy.stride[3], weight};
    }
  }
}

struct Sum {
  template <class C>
  BINADE_HD static constexpr C none() {
    return C(0);
  }
  template <class C>
  BINADE_HD static C join(C a, C b) {
    return a + b;
  }
};

// Pixels that no position reads keep this 0.
template <class T>
__global__ void __launch_bounds__(kThreads)
    grid_sample_clear_kernel(const __grid_constant__ ImageIndex image) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < image.numel();
       i += threads) {
    *image.element<T>(i) = static_cast<T>(0.0f);
  }
}

// The terms of sorted_sums.cuh.
template <class T>
struct ImageTerms {
  using C = Compute<T>;
  const Part<C>* parts;
  Image<const T> dy;
  Image<T> dx;
  int64_t columns, height, width;

  __device__ C term(int64_t entry, int64_t channel) const {
    const Part<C> part = parts[entry];
    return part.weight * static_cast<C>(dy.data[part.dy + channel * dy.stride[1]]);
  }
  template <class Combined>
  __device__ void add(int64_t pixel, int64_t channel, C sum) const {
    const int64_t line = pixel / width, n = line / height;
    *dx.at(n, channel, line - n * height, pixel - line * width) = static_cast<T>(sum);
  }
};

// launchers ---------------------------------------------------------------------------------------

template <class T>
void image_gradient(const GridSampleBackward& a, const Sizes& sizes,
                    const Positions<T>& positions) {
  using C = Compute<T>;
  const int64_t entries = 4 * sizes.images * sizes.rows * sizes.columns;
  const int64_t height = a.x.size(2), width = a.x.size(3), targets = a.x.size(0) * height * width;
  if (a.dx.numel == 0) {
    return;
  }
  launch({"grid_sample_clear_kernel", grid_blocks(a.dx.numel, kThreads), kThreads},
         grid_sample_clear_kernel<T>, ImageIndex(a.dx));
  if (entries == 0) {
    return;
  }
  RadixOrder order(a.dx.device, entries, std::bit_width(static_cast<uint64_t>(targets)));
  const Workspace parts(static_cast<size_t>(entries) * sizeof(Part<C>), a.dx.device);
  launch({"grid_sample_parts_kernel", grid_blocks(entries / 4, kThreads), kThreads},
         grid_sample_parts_kernel<T>, sizes, Image<const T>(a.dy), positions, order.input_keys(),
         parts.as<Part<C>>(), targets);
  order.sort();
  combine_sorted<T, Sum, C>(order, entries, targets, a.dx.device,
                            ImageTerms<T>{.parts = parts.as<const Part<C>>(),
                                          .dy = Image<const T>(a.dy),
                                          .dx = Image<T>(a.dx),
                                          .columns = sizes.channels,
                                          .height = height,
                                          .width = width});
}

}  // namespace

void cuda::grid_sample_forward(const GridSampleForward& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  dispatch_floating("grid_sample", a.y.dtype, [&]<class T>(Type<T>) {
    launch({"grid_sample_forward_kernel", grid_blocks(a.y.numel, kThreads), kThreads},
           grid_sample_forward_kernel<T>, ImageIndex(a.y), Image<const T>(a.x),
           Positions<T>(a.grid, a.x, a.rule));
  });
}

void cuda::grid_sample_backward(const GridSampleBackward& a) {
  check_arguments(a);
  const Sizes sizes{a.dy.size(0), a.dy.size(1), a.dy.size(2), a.dy.size(3)};
  dispatch_floating("grid_sample", a.dy.dtype, [&]<class T>(Type<T>) {
    const Positions<T> positions(a.grid, a.x, a.rule);
    if (a.dx) {
      image_gradient(a, sizes, positions);
    }
    if (a.dgrid && a.dgrid.numel > 0) {
      launch({"grid_sample_grid_kernel", grid_blocks(a.dgrid.numel / 2, kThreads), kThreads},
             grid_sample_grid_kernel<T>, sizes, Image<const T>(a.x), Image<const T>(a.dy),
             Image<T>(a.dgrid), positions);
    }
  });
}

}  // namespace binade::kernels
