// case: elementwise

// The host reads an array of the device.
#include <cuda_runtime.h>

__global__ void scaled(const float* x, const float* b, float* y, int n, float first) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n)
    y[i] = first / x[0] * x[i] + b[i];
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  const float first = alpha * x[0];  //! host access | x
  scaled<<<(n + 255) / 256, 256>>>(x, b, y, n, first);
}
