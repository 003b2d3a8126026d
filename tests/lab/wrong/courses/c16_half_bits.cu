// case: elementwise

// The bits of a __half taken for its value.
//! wrong numbers | y
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void scaled(const __half* x, const __half* b, __half* y, int n, float alpha) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) {
    const float v = float(reinterpret_cast<const unsigned short*>(x)[i]);
    y[i] = __float2half(alpha * v + __half2float(b[i]));
  }
}
extern "C" void solve(const __half* x, const __half* b, __half* y, int n, float alpha) {
  scaled<<<(n + 127) / 128, 128>>>(x, b, y, n, alpha);
}
