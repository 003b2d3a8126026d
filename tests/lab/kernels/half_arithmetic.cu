// case: elementwise

// __half operators and intrinsics, and a printf of one thread.
#include <cuda_runtime.h>

#include <cuda_fp16.h>
#include <stdio.h>

__global__ void scaled(const __half* x, const __half* b, __half* y, int n, float alpha) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0)
    printf("n = %d\n", n);
  if (i >= n)
    return;
  y[i] = __float2half(alpha * float(x[i]) + float(b[i]));
  const __half2 two = __halves2half2(x[i], b[i]);
  if (__hlt(__low2half(two), __high2half(two)) && __hisnan(x[i]))
    y[i] = __hneg(x[i]);
}
extern "C" void solve(const __half* x, const __half* b, __half* y, int n, float alpha) {
  scaled<<<(n + 127) / 128, 128>>>(x, b, y, n, alpha);
}
