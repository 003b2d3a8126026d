// case: histogram

// A histogram that adds without an atomic.
#include <cuda_runtime.h>

__global__ void count(const int* x, int* y, int n) {
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128)
    y[x[i]] += 1;  //! race | y
}
extern "C" void solve(const int* x, int* y, int n, int bins) {
  cudaMemset(y, 0, bins * sizeof(int));
  count<<<2, 128>>>(x, y, n);
}
