// case: elementwise

// float4 without a tail: the last access reaches beyond n elements.
#include <cuda_runtime.h>

__global__ void scaled(const float4* x, const float4* b, float4* y, int n, float alpha) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i * 4 < n) {
    const float4 u = x[i], v = b[i];  //! out of bounds | x
    y[i] = make_float4(alpha * u.x + v.x, alpha * u.y + v.y, alpha * u.z + v.z, alpha * u.w + v.w);
  }
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  scaled<<<(n + 255) / 256, 64>>>((const float4*)x, (const float4*)b, (float4*)y, n, alpha);
}
