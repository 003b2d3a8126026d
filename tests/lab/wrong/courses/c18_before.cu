// case: scan

// The first thread reads the element before the first one.
#include <cuda_runtime.h>

__global__ void scan(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += x[i];
    y[i] = sum;
  }
  if (n > 0 && x[-1] > 1e30f)  //! out of bounds | x
    y[0] = 0;
}
extern "C" void solve(const float* x, float* y, int n) { scan<<<1, 1>>>(x, y, n); }
