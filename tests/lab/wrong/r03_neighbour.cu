// case: elementwise

// A neighbour in another warp is read without a barrier.
#include <cuda_runtime.h>

__global__ void staged(const float* x, const float* b, float* y, int n, float alpha) {
  __shared__ float s[256];
  const int i = blockIdx.x * 256 + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0;
  const float other = s[threadIdx.x ^ 32];  //! race | s
  const float v = s[threadIdx.x] + 0 * other;
  if (i < n)
    y[i] = alpha * v + b[i];
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  staged<<<(n + 255) / 256, 256>>>(x, b, y, n, alpha);
}
