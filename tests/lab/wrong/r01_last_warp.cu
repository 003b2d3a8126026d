// case: reduce

// A reduction that drops the barriers for the last warp: lanes do not run in step.
#include <cuda_runtime.h>

__global__ void sum_blocks(const float* x, float* y, int n) {
  __shared__ float s[128];
  float v = 0;
  for (int i = threadIdx.x; i < n; i += 128)
    v += x[i];
  s[threadIdx.x] = v;
  __syncthreads();
  if (threadIdx.x < 64)
    s[threadIdx.x] += s[threadIdx.x + 64];
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int o = 32; o > 0; o /= 2)
      s[threadIdx.x] += s[threadIdx.x + o];  //! race | s
  }
  if (threadIdx.x == 0)
    y[0] = s[0];
}
extern "C" void solve(const float* x, float* y, int n) { sum_blocks<<<1, 128>>>(x, y, n); }
