// case: reduce

// One launch: the last block, found by a ticket between fences, adds what the others wrote.
#include <cuda_runtime.h>

__device__ unsigned ticket = 0;

__global__ void sum_all(const float* x, float* y, float* partials, int n) {
  __shared__ float s[64];
  __shared__ bool last;
  float v = 0;
  for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64)
    v += x[i];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (threadIdx.x < half)
      s[threadIdx.x] += s[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = s[0];
    __threadfence();
    last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < gridDim.x; ++i)
      sum += partials[i];
    y[0] = sum;
  }
}
extern "C" void solve(const float* x, float* y, int n) {
  float* partials;
  cudaMalloc(&partials, 5 * sizeof(float));
  sum_all<<<5, 64>>>(x, y, partials, n);
  cudaFree(partials);
}
