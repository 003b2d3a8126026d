// case: spmv.json

// A sparse matrix (CSR) times a vector: a warp a row.
#include <cuda_runtime.h>

__global__ void multiply(const int* begin, const int* column, const float* value, const float* x,
                         float* y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows)
    return;
  float sum = 0;
  for (int i = begin[row] + lane; i < begin[row + 1]; i += 32)
    sum += value[i] * x[column[i]];
  for (int o = 16; o > 0; o /= 2)
    sum += __shfl_xor_sync(0xffffffff, sum, o);
  if (lane == 0)
    y[row] = sum;
}
extern "C" void solve(const int* begin, const int* column, const float* value, const float* x,
                      float* y, int rows, int cols, int each) {
  multiply<<<(rows + 3) / 4, 128>>>(begin, column, value, x, y, rows);
}
