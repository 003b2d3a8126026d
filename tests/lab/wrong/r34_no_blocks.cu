// case: elementwise

// The number of blocks is rounded down, to 0 for few elements.
#include <cuda_runtime.h>
__global__ void k(const float* x, const float* b, float* y, int n, float a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = a * x[i] + b[i];
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  k<<<n / 256, 256>>>(x, b, y, n, alpha);  //! bad argument
}
