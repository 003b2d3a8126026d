// case: scan

// A scan of two sweeps over a tree in shared memory without bank conflicts.
#include <cuda_runtime.h>
#define BLOCK 256
#define NUM_BANKS 32
#define CONFLICT_FREE_OFFSET(n) ((n) >> 5)
__global__ void prescan(float* g_odata, const float* g_idata, float* sums, int n) {
  __shared__ float temp[2 * BLOCK + 2 * BLOCK / NUM_BANKS];
  int thid = threadIdx.x, base = blockIdx.x * 2 * BLOCK, offset = 1;
  int ai = thid, bi = thid + BLOCK;
  int boa = CONFLICT_FREE_OFFSET(ai), bob = CONFLICT_FREE_OFFSET(bi);
  float va = base + ai < n ? g_idata[base + ai] : 0, vb = base + bi < n ? g_idata[base + bi] : 0;
  temp[ai + boa] = va;
  temp[bi + bob] = vb;
  for (int d = BLOCK; d > 0; d >>= 1) {
    __syncthreads();
    if (thid < d) {
      int a = offset * (2 * thid + 1) - 1, b = offset * (2 * thid + 2) - 1;
      a += CONFLICT_FREE_OFFSET(a);
      b += CONFLICT_FREE_OFFSET(b);
      temp[b] += temp[a];
    }
    offset *= 2;
  }
  if (thid == 0) {
    int last = 2 * BLOCK - 1 + CONFLICT_FREE_OFFSET(2 * BLOCK - 1);
    sums[blockIdx.x] = temp[last];
    temp[last] = 0;
  }
  for (int d = 1; d < 2 * BLOCK; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (thid < d) {
      int a = offset * (2 * thid + 1) - 1, b = offset * (2 * thid + 2) - 1;
      a += CONFLICT_FREE_OFFSET(a);
      b += CONFLICT_FREE_OFFSET(b);
      float t = temp[a];
      temp[a] = temp[b];
      temp[b] += t;
    }
  }
  __syncthreads();
  if (base + ai < n)
    g_odata[base + ai] = temp[ai + boa] + va;
  if (base + bi < n)
    g_odata[base + bi] = temp[bi + bob] + vb;
}
__global__ void add_sums(float* y, const float* sums, int n) {
  __shared__ float before;
  if (threadIdx.x == 0) {
    float s = 0;
    for (int b = 0; b < (int)blockIdx.x; b++)
      s += sums[b];
    before = s;
  }
  __syncthreads();
  for (int j = 0; j < 2; ++j) {
    int i = blockIdx.x * 2 * BLOCK + j * BLOCK + threadIdx.x;
    if (i < n)
      y[i] += before;
  }
}
extern "C" void solve(const float* x, float* y, int n) {
  int blocks = (n + 2 * BLOCK - 1) / (2 * BLOCK);
  float* sums;
  cudaMalloc(&sums, sizeof(float) * blocks);
  prescan<<<blocks, BLOCK>>>(y, x, sums, n);
  add_sums<<<blocks, BLOCK>>>(y, sums, n);
  cudaFree(sums);
}
