// CUDA interpolate: one thread per element of the output, in its memory order. The forward reads up
// to four neighbours; the backward gathers from every result that used the element, so that no two
// threads add to the same place.
#include <binade/kernels/image/blend_internal.h>
#include <binade/kernels/image/interpolate.h>
#include <binade/kernels/image/interpolate_axis_internal.h>
#include <binade/kernels/cuda/device.cuh>
#include <binade/kernels/cuda/vector.cuh>
#include <binade/kernels/image/image_index.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

// The output's elements, and the strides of the input.
struct Plan {
  ImageIndex out;
  const std::byte* in;
  int64_t in_stride[4];  // elements
  InterpolationAxis vertical, horizontal;
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    interpolate_forward_kernel(const __grid_constant__ Plan plan) {
  using C = Compute<T>;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < plan.out.numel();
       i += threads) {
    int64_t at[4] = {};
    plan.out.place_of(i, at);
    const T* x =
        reinterpret_cast<const T*>(plan.in) + at[0] * plan.in_stride[0] + at[1] * plan.in_stride[1];
    const auto v = plan.vertical.at<C>(at[2]);
    const auto h = plan.horizontal.at<C>(at[3]);
    const auto load = [&](int64_t row, int64_t col) {
      return static_cast<C>(x[row * plan.in_stride[2] + col * plan.in_stride[3]]);
    };
    C value = load(v.low, h.low);
    if (plan.vertical.blend) {
      const C top = blend(value, load(v.low, h.high), h.weight);
      const C bottom = blend(load(v.high, h.low), load(v.high, h.high), h.weight);
      value = blend(top, bottom, v.weight);
    }
    *plan.out.element<T>(i) = static_cast<T>(value);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    interpolate_backward_kernel(const __grid_constant__ Plan plan) {
  using C = Compute<T>;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < plan.out.numel();
       i += threads) {
    int64_t at[4] = {};
    plan.out.place_of(i, at);
    const T* dy =
        reinterpret_cast<const T*>(plan.in) + at[0] * plan.in_stride[0] + at[1] * plan.in_stride[1];
    const int64_t rows_end = plan.vertical.end(at[2]), cols_end = plan.horizontal.end(at[3]);
    const int64_t cols_first = plan.horizontal.first(at[3]);
    C sum = 0;
    for (int64_t row = plan.vertical.first(at[2]); row < rows_end; ++row) {
      const C row_part = plan.vertical.part<C>(row, at[2]);
      C part = 0;
      for (int64_t col = cols_first; col < cols_end && row_part != C(0); ++col) {
        const C weight = plan.horizontal.part<C>(col, at[3]);
        const C g = static_cast<C>(dy[row * plan.in_stride[2] + col * plan.in_stride[3]]);
        part += weight == C(0) ? C(0) : weight * g;
      }
      sum += row_part * part;
    }
    *plan.out.element<T>(i) = static_cast<T>(sum);
  }
}

// launchers ---------------------------------------------------------------------------------------

Plan make_plan(const View& in, const View& out, const InterpolationAxis& vertical,
               const InterpolationAxis& horizontal) {
  Plan plan{.out = ImageIndex(out),
            .in = in.data,
            .in_stride = {},
            .vertical = vertical,
            .horizontal = horizontal};
  for (int d = 0; d < 4; ++d) {
    plan.in_stride[d] = in.strides[d];
  }
  return plan;
}

}  // namespace

namespace cuda {

void interpolate_forward(const InterpolateForward& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const InterpolationAxis vertical(a.x.size(2), a.y.size(2), a.mode, a.align_corners);
  const InterpolationAxis horizontal(a.x.size(3), a.y.size(3), a.mode, a.align_corners);
  dispatch_floating("interpolate", a.y.dtype, [&]<class T>(Type<T>) {
    launch({"interpolate_forward_kernel", grid_blocks(a.y.numel, kThreads), kThreads},
           interpolate_forward_kernel<T>, make_plan(a.x, a.y, vertical, horizontal));
  });
}

void interpolate_backward(const InterpolateBackward& a) {
  check_arguments(a);
  if (a.dx.numel == 0) {
    return;
  }
  const InterpolationAxis vertical(a.dx.size(2), a.dy.size(2), a.mode, a.align_corners);
  const InterpolationAxis horizontal(a.dx.size(3), a.dy.size(3), a.mode, a.align_corners);
  dispatch_floating("interpolate", a.dx.dtype, [&]<class T>(Type<T>) {
    launch({"interpolate_backward_kernel", grid_blocks(a.dx.numel, kThreads), kThreads},
           interpolate_backward_kernel<T>, make_plan(a.dy, a.dx, vertical, horizontal));
  });
}

}  // namespace cuda
}  // namespace binade::kernels
