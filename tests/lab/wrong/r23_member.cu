// case: elementwise

// An index beyond a member array.
#include <cuda_runtime.h>

struct Tile {
  float a[64];
  float b[64];
};
__global__ void scaled(const float* x, const float* b, float* y, int n, float alpha) {
  __shared__ Tile s;
  const int i = blockIdx.x * 64 + threadIdx.x;
  s.a[threadIdx.x] = i < n ? x[i] : 0;
  s.b[threadIdx.x] = 0;
  __syncthreads();
  const float next = s.a[threadIdx.x + 1];  //! out of bounds
  if (i < n)
    y[i] = alpha * s.a[threadIdx.x] + b[i] + 0 * next;
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  scaled<<<(n + 63) / 64, 64>>>(x, b, y, n, alpha);
}
