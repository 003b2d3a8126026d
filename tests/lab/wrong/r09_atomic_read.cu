// case: reduce

// A plain read after atomicAdd, without a barrier.
#include <cuda_runtime.h>

__global__ void sum_block(const float* x, float* y, int n) {
  __shared__ float total;
  if (threadIdx.x == 0)
    total = 0;
  __syncthreads();
  float v = 0;
  for (int i = threadIdx.x; i < n; i += 64)
    v += x[i];
  atomicAdd(&total, v);
  if (threadIdx.x == 0)
    y[0] = total;  //! race | total
}
extern "C" void solve(const float* x, float* y, int n) { sum_block<<<1, 64>>>(x, y, n); }
