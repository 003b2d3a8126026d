// case: elementwise

// 2048 threads a block.
#include <cuda_runtime.h>
__global__ void k(const float* x, const float* b, float* y, int n, float a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = a * x[i] + b[i];
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  k<<<(n + 2047) / 2048, 2048>>>(x, b, y, n, alpha);  //! bad argument
}
