// case: elementwise

// A product that overflows int.
#include <cuda_runtime.h>

__global__ void scaled(const float* x, const float* b, float* y, int n, float alpha) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const int place = (i + 70000) * 40000;  //! undefined arithmetic
  if (i < n)
    y[i] = alpha * x[i] + b[i] + (place == 1 ? 1 : 0);
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  scaled<<<(n + 255) / 256, 256>>>(x, b, y, n, alpha);
}
