// case: reduce

// A copy of more bytes than the array has.
#include <cuda_runtime.h>
__global__ void k(const float* t, float* y, int n) {
  float s = 0;
  for (int i = 0; i < n; i++)
    s += t[i];
  y[0] = s;
}
extern "C" void solve(const float* x, float* y, int n) {
  float* t;
  cudaMalloc(&t, n * 4);
  cudaMemcpy(t, x, n * 4 + 64, cudaMemcpyDeviceToDevice);  //! out of bounds | x
  k<<<1, 1>>>(t, y, n);
  cudaFree(t);
}
