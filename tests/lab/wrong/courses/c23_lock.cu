// case: reduce

// A spin lock is never released.
#include <cuda_runtime.h>

__device__ int lock = 0;
__global__ void sum(const float* x, float* y, int n) {
  float v = 0;
  for (int i = threadIdx.x; i < n; i += 32)
    v += x[i];

  while (atomicCAS(&lock, 0, 1) != 0)  //! step limit
    ;
  y[0] = (threadIdx.x == 0 ? 0 : y[0]) + v;
}
extern "C" void solve(const float* x, float* y, int n) {
  const int open = 0;
  cudaMemcpyToSymbol(lock, &open, sizeof(int));
  sum<<<1, 32>>>(x, y, n);
}
