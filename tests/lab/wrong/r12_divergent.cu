// case: elementwise

// A barrier in a divergent branch.
#include <cuda_runtime.h>

__global__ void staged(const float* x, const float* b, float* y, int n, float alpha) {
  __shared__ float s[256];
  const int i = blockIdx.x * 256 + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0;
  if (threadIdx.x < 32) {
    __syncthreads();  //! divergent barrier
  } else {
    __syncthreads();
  }
  const float v = s[threadIdx.x];
  if (i < n)
    y[i] = alpha * v + b[i];
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  staged<<<(n + 255) / 256, 256>>>(x, b, y, n, alpha);
}
