// CUDA cumulative products: a thread walks a line; neighbouring threads have neighbouring lines.
// The products are taken in the order of the line. Products of parts on several threads could
// overflow where the line does not: if 0 comes first, then large numbers.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/sort/cumprod.h>
#include <binade/kernels/sort/cumsum_internal.h>
#include <binade/kernels/cuda/vector.cuh>
#include <binade/kernels/sort/lines.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 128;

template <class T>
using Product =
    std::conditional_t<std::is_integral_v<T>, T, std::conditional_t<sizeof(T) == 2, float, double>>;

template <class T>
__global__ void __launch_bounds__(kThreads)
    cumprod_forward_kernel(const __grid_constant__ LinePlan<2> p) {
  using C = Product<T>;
  for (int64_t line = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       line < p.lines.numel; line += static_cast<int64_t>(gridDim.x) * kThreads) {
    std::byte* at[2];  // y, x
    p.lines.locate(line, at);
    C product = C(1);
#pragma unroll 4
    for (int64_t k = 0; k < p.n; ++k) {
      product = product * static_cast<C>(*reinterpret_cast<const T*>(at[1] + k * p.step[1]));
      *reinterpret_cast<T*>(at[0] + k * p.step[0]) = static_cast<T>(product);
    }
  }
}

// With p_k = x_0 ... x_{k-1} and s_k = dy_k + x_{k+1} s_{k+1}: dx_k = p_k s_k, NaN where x_k is.
// before: p_k, [n, lines].
template <class T>
__global__ void __launch_bounds__(kThreads)
    cumprod_backward_kernel(const __grid_constant__ LinePlan<3> p, Product<T>* before) {
  using C = Product<T>;
  for (int64_t line = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       line < p.lines.numel; line += static_cast<int64_t>(gridDim.x) * kThreads) {
    std::byte* at[3];  // dx, x, dy
    p.lines.locate(line, at);
    C product = C(1);
#pragma unroll 4
    for (int64_t k = 0; k < p.n; ++k) {
      before[k * p.lines.numel + line] = product;
      product = product * static_cast<C>(*reinterpret_cast<const T*>(at[1] + k * p.step[1]));
    }
    C after = C(0);
#pragma unroll 4
    for (int64_t k = p.n - 1; k >= 0; --k) {
      const C rest = after + static_cast<C>(*reinterpret_cast<const T*>(at[2] + k * p.step[2]));
      const C x = static_cast<C>(*reinterpret_cast<const T*>(at[1] + k * p.step[1]));
      const C gradient = x == x ? before[k * p.lines.numel + line] * rest : x;
      *reinterpret_cast<T*>(at[0] + k * p.step[0]) = static_cast<T>(gradient);
      after = x * rest;
    }
  }
}

}  // namespace

// Launchers ---------------------------------------------------------------------------------------

void cuda::cumprod_forward(const CumulativeProduct& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const LinePlan<2> p = plan_of_lines("cumprod_forward", {&a.y, &a.x}, a.dim);
  dispatch_sums(a.x.dtype, [&]<class T>(Type<T>) {
    launch({"cumprod_forward_kernel", grid_blocks(p.lines.numel, kThreads), kThreads},
           cumprod_forward_kernel<T>, p);
  });
}

void cuda::cumprod_backward(const CumulativeProductBackward& a) {
  check_arguments(a);
  if (a.dx.numel == 0) {
    return;
  }
  const LinePlan<3> p = plan_of_lines("cumprod_backward", {&a.dx, &a.x, &a.dy}, a.dim);
  dispatch_floating("cumprod_backward", a.x.dtype, [&]<class T>(Type<T>) {
    const Workspace before(static_cast<size_t>(a.x.numel) * sizeof(Product<T>), a.dx.device);
    launch({"cumprod_backward_kernel", grid_blocks(p.lines.numel, kThreads), kThreads},
           cumprod_backward_kernel<T>, p, before.as<Product<T>>());
  });
}

}  // namespace binade::kernels
