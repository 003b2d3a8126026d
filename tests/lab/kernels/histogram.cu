// case: histogram

// A histogram: each block counts in shared memory, then adds to the result.
#include <cuda_runtime.h>

__global__ void clear(unsigned* y, int bins) {
  for (int i = threadIdx.x; i < bins; i += blockDim.x)
    y[i] = 0;
}
__global__ void count(const int* x, unsigned* y, int n, int bins) {
  extern __shared__ unsigned counts[];
  for (int i = threadIdx.x; i < bins; i += blockDim.x)
    counts[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&counts[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < bins; i += blockDim.x)
    if (counts[i] != 0)
      atomicAdd(&y[i], counts[i]);
}
extern "C" void solve(const int* x, unsigned* y, int n, int bins) {
  clear<<<1, 128>>>(y, bins);
  count<<<4, 128, bins * sizeof(unsigned)>>>(x, y, n, bins);
}
