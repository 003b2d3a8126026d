// case: elementwise

// No guard for the tail.
#include <cuda_runtime.h>

__global__ void scaled(const float* x, const float* b, float* y, int n, float alpha) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  y[i] = alpha * x[i] + b[i];  //! out of bounds | x
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  scaled<<<(n + 255) / 256, 256>>>(x, b, y, n, alpha);
}
