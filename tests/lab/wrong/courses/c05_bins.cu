// case: histogram

// There are more bins than elements in the shared array.
#include <cuda_runtime.h>
__global__ void k(const int* x, int* y, int n, int bins) {
  __shared__ int h[128];
  for (int b = threadIdx.x; b < 128; b += 64)
    h[b] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 64)
    atomicAdd(&h[x[i]], 1);  //! out of bounds
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += 64)
    y[b] = h[b];
}
extern "C" void solve(const int* x, int* y, int n, int bins) { k<<<1, 64>>>(x, y, n, bins); }
