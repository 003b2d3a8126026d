// CUDA cumulative log-sums: a thread walks a line; neighbouring threads have neighbouring lines.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/sort/logcumsumexp.h>
#include <binade/kernels/sort/logcumsumexp_internal.h>
#include <binade/kernels/cuda/vector.cuh>
#include <binade/kernels/sort/lines.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 128;

template <class T>
__global__ void __launch_bounds__(kThreads)
    logcumsumexp_forward_kernel(const __grid_constant__ LinePlan<2> p) {
  using C = LogSum<T>;
  for (int64_t line = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       line < p.lines.numel; line += static_cast<int64_t>(gridDim.x) * kThreads) {
    std::byte* at[2];  // y, x
    p.lines.locate(line, at);
    RunningLogSum<C> so_far;
    for (int64_t k = 0; k < p.n; ++k) {
      so_far.add(static_cast<C>(*reinterpret_cast<const T*>(at[1] + k * p.step[1])));
      *reinterpret_cast<T*>(at[0] + k * p.step[0]) = static_cast<T>(so_far.value());
    }
  }
}

// With u_i = dy_i + exp(y_i - y_{i+1}) u_{i+1}: dx_i = exp(x_i - y_i) u_i. All exponents are at
// most 0.
template <class T>
__global__ void __launch_bounds__(kThreads)
    logcumsumexp_backward_kernel(const __grid_constant__ LinePlan<3> p,
                                 LogSum<T>* __restrict__ y) {  // [n, lines]
  using C = LogSum<T>;
  for (int64_t line = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       line < p.lines.numel; line += static_cast<int64_t>(gridDim.x) * kThreads) {
    std::byte* at[3];  // dx, x, dy
    p.lines.locate(line, at);
    RunningLogSum<C> so_far;
    for (int64_t k = 0; k < p.n; ++k) {
      so_far.add(static_cast<C>(*reinterpret_cast<const T*>(at[1] + k * p.step[1])));
      y[k * p.lines.numel + line] = so_far.value();
    }
    C after = so_far.value(), rest = C(0);  // y_{i+1}, u_{i+1}
    for (int64_t k = p.n - 1; k >= 0; --k) {
      const C now = y[k * p.lines.numel + line];
      rest = static_cast<C>(*reinterpret_cast<const T*>(at[2] + k * p.step[2])) +
             share_of(now, after) * rest;
      after = now;
      const C x = static_cast<C>(*reinterpret_cast<const T*>(at[1] + k * p.step[1]));
      *reinterpret_cast<T*>(at[0] + k * p.step[0]) = static_cast<T>(share_of(x, now) * rest);
    }
  }
}

}  // namespace

// Launchers ---------------------------------------------------------------------------------------

void cuda::logcumsumexp_forward(const LogCumulativeSum& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const LinePlan<2> p = plan_of_lines("logcumsumexp_forward", {&a.y, &a.x}, a.dim);
  dispatch_floating("logcumsumexp_forward", a.x.dtype, [&]<class T>(Type<T>) {
    launch({"logcumsumexp_forward_kernel", grid_blocks(p.lines.numel, kThreads), kThreads},
           logcumsumexp_forward_kernel<T>, p);
  });
}

void cuda::logcumsumexp_backward(const LogCumulativeSumBackward& a) {
  check_arguments(a);
  if (a.dx.numel == 0) {
    return;
  }
  const LinePlan<3> p = plan_of_lines("logcumsumexp_backward", {&a.dx, &a.x, &a.dy}, a.dim);
  dispatch_floating("logcumsumexp_backward", a.x.dtype, [&]<class T>(Type<T>) {
    const Workspace y(static_cast<size_t>(a.x.numel) * sizeof(LogSum<T>), a.dx.device);
    launch({"logcumsumexp_backward_kernel", grid_blocks(p.lines.numel, kThreads), kThreads},
           logcumsumexp_backward_kernel<T>, p, y.as<LogSum<T>>());
  });
}

}  // namespace binade::kernels
