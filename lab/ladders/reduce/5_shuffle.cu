// Sum, step 5: shuffles.
// Idea: the 32 lanes of a warp add their values in registers, with 5 shuffles and no barrier. Only
// 8 values, one a warp, go through shared memory. Expected gain: 1 barrier a block instead of 9,
// and few accesses to shared memory.
//
// Counted (65536): global 2082 requests 8229 sectors, shared 528 requests 528 passes, 264
// barriers, 2112 shuffles, 0 atomics, 0 products
#include <cuda_runtime.h>

constexpr int kThreads = 256, kBlocks = 32;

__device__ float partial[kBlocks];  // one sum per block, added in a fixed order

// Thread 0 gets the sum of v over the block.
__device__ float block_sum(float v) {
  __shared__ float part[kThreads / 32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int distance = 16; distance > 0; distance /= 2) {
    v += __shfl_down_sync(~0u, v, distance);
  }
  if (lane == 0) {
    part[warp] = v;
  }
  __syncthreads();
  v = lane < kThreads / 32 ? part[lane] : 0.0f;
  for (int distance = kThreads / 64; distance > 0; distance /= 2) {
    v += __shfl_down_sync(~0u, v, distance);
  }
  return v;
}

__global__ void reduce(const float* in, int n) {
  float sum = 0;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += kBlocks * kThreads) {
    sum += in[i];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
  }
}
__global__ void finish(float* out) {
  const float sum = block_sum(threadIdx.x < kBlocks ? partial[threadIdx.x] : 0.0f);
  if (threadIdx.x == 0) {
    *out = sum;
  }
}

extern "C" void solve(const float* x, float* y, int n) {
  reduce<<<kBlocks, kThreads>>>(x, n);
  finish<<<1, kThreads>>>(y);
}
