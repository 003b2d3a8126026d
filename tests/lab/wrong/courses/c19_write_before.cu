// case: histogram

// The bin is one too low, so the value 0 is counted before the start of the array.
#include <cuda_runtime.h>

__global__ void clear(int* y, int bins) {
  for (int i = threadIdx.x; i < bins; i += 64)
    y[i] = 0;
}
__global__ void count(const int* x, int* y, int n) {
  for (int i = threadIdx.x; i < n; i += 64)
    atomicAdd(&y[x[i] - 1], 1);  //! out of bounds | y
}
extern "C" void solve(const int* x, int* y, int n, int bins) {
  clear<<<1, 64>>>(y, bins);
  count<<<1, 64>>>(x, y, n);
}
