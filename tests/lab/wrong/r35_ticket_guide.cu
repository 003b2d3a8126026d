// case: reduce

// The ticket of the programming guide (Memory Fence Functions): the last block has no fence of its
// own.
#include <cuda_runtime.h>

__device__ unsigned ticket = 0;
__device__ volatile float partials[8];

__global__ void sum_all(const float* x, float* y, int n) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    float v = 0;
    for (int i = blockIdx.x; i < n; i += gridDim.x)
      v += x[i];
    partials[blockIdx.x] = v;
    __threadfence();
    last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 1) {
    float sum = 0;
    for (int i = 0; i < gridDim.x; ++i)
      sum += partials[i];  //! missing fence | partials | warning
    *y = sum;
  }
}
extern "C" void solve(const float* x, float* y, int n) { sum_all<<<8, 32>>>(x, y, n); }
