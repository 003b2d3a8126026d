// case: elementwise

// A kernel writes to its input.
#include <cuda_runtime.h>

__global__ void scaled(const float* x, const float* b, float* y, int n, float alpha) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n)
    return;
  const_cast<float*>(x)[i] *= alpha;  //! write to an input | x
  y[i] = x[i] + b[i];
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  scaled<<<(n + 255) / 256, 256>>>(x, b, y, n, alpha);
}
