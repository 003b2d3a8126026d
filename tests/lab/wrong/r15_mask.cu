// case: elementwise

// A shuffle with a full mask under an if.
#include <cuda_runtime.h>

__global__ void shuffled(const float* x, const float* b, float* y, int n, float alpha) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  float v = i < n ? x[i] : 0;
  if (threadIdx.x % 32 < 16)
    v = __shfl_sync(0xffffffffu, v, threadIdx.x % 16);  //! divergent warp
  if (i < n)
    y[i] = alpha * v + b[i];
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  shuffled<<<(n + 63) / 64, 64>>>(x, b, y, n, alpha);
}
