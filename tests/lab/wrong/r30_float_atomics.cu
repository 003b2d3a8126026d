// case: reduce

// Atomics of floats: the order of the sum, and its bits, are not fixed.
#include <cuda_runtime.h>

__global__ void clear(float* y) { y[0] = 0; }
__global__ void sum(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n)
    atomicAdd(y, x[i]);  //! non-deterministic | y | warning
}
extern "C" void solve(const float* x, float* y, int n) {
  clear<<<1, 1>>>(y);
  sum<<<(n + 63) / 64, 64>>>(x, y, n);
}
