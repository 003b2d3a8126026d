// case: elementwise

// An index beyond a local array.
#include <cuda_runtime.h>

__global__ void scaled(const float* x, const float* b, float* y, int n, float alpha) {
  float kept[4];
  const int first = (blockIdx.x * 64 + threadIdx.x) * 4;
  for (int k = 0; k <= 4; ++k)
    if (first + k < n)
      kept[k] = alpha * x[first + k];  //! out of bounds | kept
  for (int k = 0; k < 4; ++k)
    if (first + k < n)
      y[first + k] = kept[k] + b[first + k];
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  scaled<<<(n + 255) / 256, 64>>>(x, b, y, n, alpha);
}
