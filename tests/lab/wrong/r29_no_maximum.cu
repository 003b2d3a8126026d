// case: softmax

// A softmax without the maximum.
#include <cuda_runtime.h>

__global__ void softmax(const float* x, float* y, int cols) {
  const float* row = x + size_t(blockIdx.x) * cols;
  float sum = 0;
  for (int c = 0; c < cols; ++c)
    sum += expf(row[c]);  //! wrong numbers | y
  for (int c = threadIdx.x; c < cols; c += 64)
    y[size_t(blockIdx.x) * cols + c] = expf(row[c]) / sum;
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  softmax<<<rows, 64>>>(x, y, cols);
}
