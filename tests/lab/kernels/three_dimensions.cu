// case: elementwise

// A grid and blocks of three dimensions for an array of one.
#include <cuda_runtime.h>

__global__ void scaled(const float* x, const float* b, float* y, size_t n, float alpha) {
  const size_t block = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const size_t thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const size_t threads = blockDim.x * blockDim.y * blockDim.z;
  const size_t blocks = size_t(gridDim.x) * gridDim.y * gridDim.z;
  for (size_t i = block * threads + thread; i < n; i += blocks * threads)
    y[i] = fmaf(alpha, x[i], b[i]);
}
extern "C" void solve(const float* x, const float* b, float* y, size_t n, float alpha) {
  scaled<<<dim3(2, 3, 2), dim3(3, 5, 7)>>>(x, b, y, n, alpha);
}
