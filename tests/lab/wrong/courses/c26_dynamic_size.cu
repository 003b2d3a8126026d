// case: reduce

// The size of dynamic shared memory is given in elements instead of bytes.
#include <cuda_runtime.h>

__global__ void sum(const float* x, float* y, int n) {
  extern __shared__ float partial[];
  float v = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    v += x[i];
  partial[threadIdx.x] = v;  //! out of bounds | partial
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < blockDim.x; ++i)
      v += partial[i];
    y[0] = v;
  }
}
extern "C" void solve(const float* x, float* y, int n) { sum<<<1, 96, 96>>>(x, y, n); }
