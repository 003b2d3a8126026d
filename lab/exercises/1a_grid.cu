// Exercise 1a, threads and memory: the last rows are missing.
// Fault: one of the two numbers of blocks is rounded down.
//
// Check: binade kernel lab/exercises/1a_grid.cu --case transpose
#include <cuda_runtime.h>

__global__ void transpose(const float* in, float* out, int rows, int cols) {
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  if (r < rows && c < cols) {
    out[size_t(c) * rows + r] = in[size_t(r) * cols + c];
  }
}

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  const dim3 grid((cols + 31) / 32, rows / 8);
  transpose<<<grid, dim3(32, 8)>>>(x, y, rows, cols);
}
