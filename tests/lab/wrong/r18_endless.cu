// case: reduce

// A loop without end.
#include <cuda_runtime.h>

__global__ void sum(const float* x, float* y, int n) {
  float v = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.y - 1) {
    v += x[i];  //! step limit
  }
  y[0] = v;
}
extern "C" void solve(const float* x, float* y, int n) { sum<<<1, 1>>>(x, y, n); }
