// case: reduce

// In a block of 33 threads the second warp has one lane: the full mask names 31 missing lanes.
#include <cuda_runtime.h>

__global__ void sum(const float* x, float* y, int n) {
  float v = 0;
  for (int i = threadIdx.x; i < n; i += 33)
    v += x[i];
  for (int step = 16; step > 0; step /= 2)
    v += __shfl_down_sync(0xffffffffu, v, step);  //! divergent warp
  if (threadIdx.x == 0)
    y[0] = v;
}
extern "C" void solve(const float* x, float* y, int n) { sum<<<1, 33>>>(x, y, n); }
