// CUDA running maxima and minima: a thread walks a line; neighbouring threads have neighbouring
// lines.
#include <binade/kernels/sort/cumextreme.h>
#include <binade/kernels/sort/cumextreme_internal.h>
#include <binade/kernels/cuda/vector.cuh>
#include <binade/kernels/sort/lines.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 128;

template <class T>
__global__ void __launch_bounds__(kThreads)
    cumextreme_kernel(const __grid_constant__ LinePlan<3> p, bool smallest) {
  using C = Ordered<T>;
  for (int64_t line = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       line < p.lines.numel; line += static_cast<int64_t>(gridDim.x) * kThreads) {
    std::byte* at[3];  // values, indices, x
    p.lines.locate(line, at);
    C so_far = static_cast<C>(*reinterpret_cast<const T*>(at[2]));
    int64_t index = 0;
#pragma unroll 4
    for (int64_t k = 0; k < p.n; ++k) {
      const C element = static_cast<C>(*reinterpret_cast<const T*>(at[2] + k * p.step[2]));
      if (is_extreme(element, so_far, smallest)) {
        so_far = element;
        index = k;
      }
      *reinterpret_cast<T*>(at[0] + k * p.step[0]) = static_cast<T>(so_far);
      *reinterpret_cast<int64_t*>(at[1] + k * p.step[1]) = index;
    }
  }
}

}  // namespace

void cuda::cumextreme(const CumulativeExtreme& a) {
  check_arguments(a);
  if (a.values.numel == 0) {
    return;
  }
  const LinePlan<3> p = plan_of_lines("cumextreme", {&a.values, &a.indices, &a.x}, a.dim);
  dispatch("cumextreme", a.x.dtype, [&]<class T>(Type<T>) {
    launch({"cumextreme_kernel", grid_blocks(p.lines.numel, kThreads), kThreads},
           cumextreme_kernel<T>, p, a.smallest);
  });
}

}  // namespace binade::kernels
