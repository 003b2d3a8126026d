// case: reduce

// The last block reads what other blocks wrote, without __threadfence().
#include <cuda_runtime.h>

__global__ void sum_all(const float* x, float* y, float* partials, unsigned* ticket, int n) {
  __shared__ bool last;
  __shared__ float s[64];
  float v = 0;
  for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64)
    v += x[i];
  s[threadIdx.x] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < 64; ++i)
      sum += s[i];
    partials[blockIdx.x] = sum;
    last = atomicAdd(ticket, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < gridDim.x; ++i)
      sum += partials[i];  //! race | partials
    y[0] = sum;
  }
}
extern "C" void solve(const float* x, float* y, int n) {
  float* partials;
  unsigned* ticket;
  cudaMalloc(&partials, 4 * sizeof(float));
  cudaMalloc(&ticket, sizeof(unsigned));
  cudaMemset(ticket, 0, sizeof(unsigned));
  sum_all<<<4, 64>>>(x, y, partials, ticket, n);
  cudaFree(partials);
  cudaFree(ticket);
}
