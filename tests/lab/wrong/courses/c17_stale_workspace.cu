// case: reduce

// The first call's workspace is used again, although solve() freed it at its end.
#include <cuda_runtime.h>

__global__ void halves(const float* x, float* parts, int n) {
  float v = 0;
  for (int i = threadIdx.x; i < n; i += 32)
    v += x[i];
  parts[threadIdx.x] = v;  //! out of bounds
}
__global__ void whole(const float* parts, float* y) {
  float v = 0;
  for (int i = 0; i < 32; ++i)
    v += parts[i];
  y[0] = v;
}
extern "C" void solve(const float* x, float* y, int n) {
  static float* parts = nullptr;
  if (parts == nullptr)
    cudaMalloc(&parts, 32 * sizeof(float));
  halves<<<1, 32>>>(x, parts, n);
  whole<<<1, 1>>>(parts, y);
  cudaFree(parts);
}
