// case: stencil

// A stencil in place: blocks of one launch have no order.
#include <cuda_runtime.h>

__global__ void copy(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n)
    y[i] = x[i];
}
__global__ void smooth(float* y, int rows, int cols) {
  const int i = blockIdx.x * 64 + threadIdx.x, r = i / cols, c = i % cols;
  if (i >= rows * cols)
    return;
  float sum = y[i];
  if (c > 0)
    sum += y[i - 1];
  if (c + 1 < cols)
    sum += y[i + 1];
  if (r > 0)
    sum += y[i - cols];
  if (r + 1 < rows)
    sum += y[i + cols];
  y[i] = sum / 5;  //! race | y
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  const int n = rows * cols, blocks = (n + 63) / 64;
  copy<<<blocks, 64>>>(x, y, n);
  smooth<<<blocks, 64>>>(y, rows, cols);
}
