// case: scan

// An inclusive scan: blocks scan their part in shared memory, the sums of the blocks are added
// after.
#include <cuda_runtime.h>

constexpr int kBlock = 256;

__global__ void scan_blocks(const float* x, float* y, float* sums, int n) {
  extern __shared__ float s[];
  const int i = blockIdx.x * kBlock + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int reach = 1; reach < kBlock; reach *= 2) {
    const float before = threadIdx.x >= reach ? s[threadIdx.x - reach] : 0.0f;
    __syncthreads();
    if (threadIdx.x >= reach)
      s[threadIdx.x] += before;
    __syncthreads();
  }
  if (i < n)
    y[i] = s[threadIdx.x];
  if (threadIdx.x == kBlock - 1)
    sums[blockIdx.x] = s[kBlock - 1];
}
__global__ void add_before(float* y, const float* sums, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= n)
    return;
  float before = 0;
  for (int b = 0; b < blockIdx.x; ++b)
    before += sums[b];
  y[i] += before;
}
extern "C" void solve(const float* x, float* y, int n) {
  const int blocks = (n + kBlock - 1) / kBlock;
  float* sums;
  cudaMalloc((void**)&sums, blocks * sizeof(float));
  scan_blocks<<<blocks, kBlock, kBlock * sizeof(float)>>>(x, y, sums, n);
  add_before<<<blocks, kBlock>>>(y, sums, n);
  cudaFree(sums);
}
