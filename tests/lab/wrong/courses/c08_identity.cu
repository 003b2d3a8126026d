// case: softmax

// The maximum begins at FLT_MIN, the smallest positive number, and not at the lowest one: rows of
// large negative numbers vanish.
//! wrong numbers | y
#include <cuda_runtime.h>

#include <cfloat>

__global__ void softmax(const float* x, float* y, int cols) {
  const float* row = x + size_t(blockIdx.x) * cols;
  float m = FLT_MIN, sum = 0;
  for (int c = 0; c < cols; ++c)
    m = fmaxf(m, row[c]);
  for (int c = 0; c < cols; ++c)
    sum += expf(row[c] - m);
  for (int c = threadIdx.x; c < cols; c += 32)
    y[size_t(blockIdx.x) * cols + c] = expf(row[c] - m) / sum;
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  softmax<<<rows, 32>>>(x, y, cols);
}
