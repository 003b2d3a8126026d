// case: elementwise

// A local variable without a value.
#include <cuda_runtime.h>

__global__ void scaled(const float* x, const float* b, float* y, int n, float alpha) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  float v;
  if (n > 1000)
    v = alpha;
  if (i < n)
    y[i] = v * x[i] + b[i];  //! uninitialised variable
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  scaled<<<(n + 255) / 256, 256>>>(x, b, y, n, alpha);
}
