// case: elementwise

// A float4 from an address that is no multiple of 16.
#include <cuda_runtime.h>

__global__ void scaled(const float* x, const float* b, float* y, int n, float alpha) {
  const int i = 4 * (blockIdx.x * 64 + threadIdx.x);
  if (i == 0)
    y[0] = alpha * x[0] + b[0];
  if (i + 4 < n) {
    const float4 v = *reinterpret_cast<const float4*>(x + 1 + i);  //! misaligned | x
    y[i + 1] = alpha * v.x + b[i + 1];
    y[i + 2] = alpha * v.y + b[i + 2];
    y[i + 3] = alpha * v.z + b[i + 3];
    y[i + 4] = alpha * v.w + b[i + 4];
  } else {
    for (int k = i + 1; k < n; ++k)
      y[k] = alpha * x[k] + b[k];
  }
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  scaled<<<(n + 255) / 256, 64>>>(x, b, y, n, alpha);
}
