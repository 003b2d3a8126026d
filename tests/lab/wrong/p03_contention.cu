// case: reduce

// All lanes add to one address.
#include <cuda_runtime.h>

__global__ void sum(const int* dummy, const float* x, float* y, int n) {
  __shared__ int count;
  if (threadIdx.x == 0)
    count = 0;
  __syncthreads();
  atomicAdd(&count, 1);
  for (int k = 0; k < 8; ++k)
    atomicAdd(&count, 1);  //! atomic contention | | performance
  __syncthreads();
  if (threadIdx.x == 0) {
    float v = 0;
    for (int i = 0; i < n; ++i)
      v += x[i];
    y[0] = v + (count == 64 * 9 ? 0 : 1);
  }
}
extern "C" void solve(const float* x, float* y, int n) { sum<<<1, 64>>>(nullptr, x, y, n); }
