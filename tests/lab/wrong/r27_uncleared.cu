// case: reduce

// += into an output that nobody cleared.
#include <cuda_runtime.h>

__global__ void sum(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i)
    y[0] += x[i];  //! uninitialised read | y
}
extern "C" void solve(const float* x, float* y, int n) { sum<<<1, 1>>>(x, y, n); }
