// case: sort.json

// Bitonic sort of rows of a power of two.
#include <cuda_runtime.h>

__global__ void sort_rows(const float* x, float* y, int cols) {
  extern __shared__ float s[];
  const size_t row = size_t(blockIdx.x) * cols;
  for (int i = threadIdx.x; i < cols; i += blockDim.x)
    s[i] = x[row + i];
  __syncthreads();
  for (int size = 2; size <= cols; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        const int other = i ^ stride;
        if (other > i) {
          const bool up = (i & size) == 0;
          const float a = s[i], b = s[other];
          if ((a > b) == up) {
            s[i] = b;
            s[other] = a;
          }
        }
      }
      __syncthreads();
    }
  }
  for (int i = threadIdx.x; i < cols; i += blockDim.x)
    y[row + i] = s[i];
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  sort_rows<<<rows, 64, cols * sizeof(float)>>>(x, y, cols);
}
