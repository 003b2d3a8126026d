// case: elementwise

// Shared memory that nothing wrote.
#include <cuda_runtime.h>

__global__ void staged(const float* x, const float* b, float* y, int n, float alpha) {
  __shared__ float s[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (threadIdx.x < 63)
    s[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  const float v = s[threadIdx.x];  //! uninitialised read | s
  if (i < n)
    y[i] = alpha * v + b[i];
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  staged<<<(n + 63) / 64, 64>>>(x, b, y, n, alpha);
}
