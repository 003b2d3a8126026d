// case: reduce

// A lock that one thread of each block takes, with fences on both sides. The sum is in double, so
// the order of the blocks does not show in the rounded result.
#include <cuda_runtime.h>

__device__ int lock = 0;
__device__ double total;

__global__ void clear() { total = 0; }
__global__ void sum(const float* x, int n) {
  double v = 0;
  for (int i = blockIdx.x; i < n; i += gridDim.x)
    v += x[i];
  while (atomicCAS(&lock, 0, 1) != 0) {
  }
  __threadfence();
  const volatile double* now = &total;
  total = *now + v;
  __threadfence();
  atomicExch(&lock, 0);
}
__global__ void store(float* y) { y[0] = float(total); }
extern "C" void solve(const float* x, float* y, int n) {
  clear<<<1, 1>>>();
  sum<<<6, 1>>>(x, n);
  store<<<1, 1>>>(y);
}
