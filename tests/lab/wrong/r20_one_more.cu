// case: elementwise

// i <= n.
#include <cuda_runtime.h>

__global__ void scaled(const float* x, const float* b, float* y, int n, float alpha) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const float v = i < n ? alpha * x[i] + b[i] : 0;
  if (i <= n)
    y[i] = v;  //! out of bounds | y
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  scaled<<<n / 256 + 1, 256>>>(x, b, y, n, alpha);
}
