// case: reduce

// A thread waits for a flag that nobody sets.
#include <cuda_runtime.h>

__global__ void spin(const float* x, float* y, volatile int* flag, int n) {
  if (threadIdx.x == 0) {
    while (*flag == 0) {  //! step limit
    }
    y[0] = x[0];
  }
}
extern "C" void solve(const float* x, float* y, int n) {
  int* flag;
  cudaMalloc(&flag, sizeof(int));
  cudaMemset(flag, 0, sizeof(int));
  spin<<<1, 32>>>(x, y, flag, n);
  cudaFree(flag);
}
