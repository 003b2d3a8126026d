// case: elementwise

// Vectors of four, a tail of its own, and sizes of other types.
#include <cuda_runtime.h>
__global__ void k4(const float4* __restrict__ x, const float4* __restrict__ b, float4* y, int n4,
                   float alpha) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
    float4 v = x[i], c = __ldg(b + i);
    y[i] = make_float4(fmaf(alpha, v.x, c.x), fmaf(alpha, v.y, c.y), fmaf(alpha, v.z, c.z),
                       fmaf(alpha, v.w, c.w));
  }
}
__global__ void tail(const float* x, const float* b, float* y, int from, int n, float alpha) {
  int i = from + threadIdx.x;
  if (i < n)
    y[i] = alpha * x[i] + b[i];
}
extern "C" void solve(const float* x, const float* b, float* y, size_t n, double alpha) {
  int n4 = n / 4;
  if (n4 > 0)
    k4<<<4, 96>>>(reinterpret_cast<const float4*>(x), (const float4*)b, (float4*)y, n4, alpha);
  tail<<<1, 4>>>(x, b, y, n4 * 4, n, alpha);
}
