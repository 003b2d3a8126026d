// case: reduce

// The input is used as scratch memory.
#include <cuda_runtime.h>

__global__ void sum(float* x, float* y, int n) {
  for (int width = 1; width < n; width *= 2) {
    for (int i = threadIdx.x * 2 * width; i + width < n; i += 64 * 2 * width)
      x[i] += x[i + width];  //! write to an input | x
    __syncthreads();
  }
  if (threadIdx.x == 0)
    y[0] = x[0];
}
extern "C" void solve(const float* x, float* y, int n) {
  sum<<<1, 64>>>(const_cast<float*>(x), y, n);
}
