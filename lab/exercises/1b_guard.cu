// Exercise 1b, threads and memory: some threads have no element.
// Fault: the grid is rounded up, so some threads lie outside of the matrix. What may they do?
//
// Check: binade kernel lab/exercises/1b_guard.cu --case transpose
#include <cuda_runtime.h>

__global__ void transpose(const float* in, float* out, int rows, int cols) {
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  if (size_t(r) * cols + c < size_t(rows) * cols) {
    out[size_t(c) * rows + r] = in[size_t(r) * cols + c];
  }
}

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  const dim3 grid((cols + 31) / 32, (rows + 7) / 8);
  transpose<<<grid, dim3(32, 8)>>>(x, y, rows, cols);
}
