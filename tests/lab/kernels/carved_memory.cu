// case: histogram

// Dynamic shared memory that is cut into arrays of two types.
#include <cuda_runtime.h>

extern __shared__ unsigned char memory[];

__global__ void count(const unsigned char* x, unsigned* y, int n, int bins) {
  unsigned* const counts = reinterpret_cast<unsigned*>(memory);
  unsigned short* const kept = reinterpret_cast<unsigned short*>(counts + bins);
  for (int v = threadIdx.x; v < bins; v += blockDim.x)
    counts[v] = 0;
  __syncthreads();
  for (int first = 0; first < n; first += blockDim.x) {
    const int i = first + threadIdx.x;
    kept[threadIdx.x] = i < n ? x[i] : 0xffff;
    __syncthreads();
    const int from = blockDim.x - 1 - threadIdx.x;
    if (kept[from] != 0xffff)
      atomicAdd(counts + kept[from], 1u);
    __syncthreads();
  }
  for (int v = threadIdx.x; v < bins; v += blockDim.x)
    y[v] = counts[v];
}
extern "C" void solve(const unsigned char* x, unsigned* y, int n, int bins) {
  count<<<1, 96, bins * sizeof(unsigned) + 96 * sizeof(unsigned short)>>>(x, y, n, bins);
}
