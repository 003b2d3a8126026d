// case: elementwise

// The number of blocks is rounded down: the tail is not written.
//! wrong numbers | y
#include <cuda_runtime.h>

__global__ void scaled(const float* x, const float* b, float* y, int n, float alpha) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  if (i < n)
    y[i] = alpha * x[i] + b[i];
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  const int blocks = n < 32 ? 1 : n / 32;
  scaled<<<blocks, 32>>>(x, b, y, n, alpha);
}
