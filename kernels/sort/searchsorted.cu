// CUDA searchsorted: a thread finds the place of one value.
#include <binade/kernels/sort/searchsorted.h>
#include <binade/kernels/sort/searchsorted_internal.h>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void __launch_bounds__(kThreads)
    searchsorted_kernel(const T* __restrict__ sequence,  // [rows, n]
                        const T* __restrict__ values,    // [rows, m]
                        int64_t* __restrict__ y, int64_t count, int64_t n, int64_t m, bool right) {
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    y[i] = place_of<T>(sequence + i / m * n, n, values[i], right);
  }
}

}  // namespace

void cuda::searchsorted(const SearchSorted& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  dispatch("searchsorted", a.values.dtype, [&]<class T>(Type<T>) {
    launch({"searchsorted_kernel", grid_blocks(a.y.numel, kThreads), kThreads},
           searchsorted_kernel<T>, a.sequence.as<const T>(), a.values.as<const T>(),
           a.y.as<int64_t>(), a.y.numel, a.sequence.size(1), a.values.size(1), a.right);
  });
}

}  // namespace binade::kernels
