// case: transpose

// Rows and columns are swapped in the index of the output: writes land far beyond it, or at a wrong
// place in it.
#include <cuda_runtime.h>

__global__ void transpose(const float* x, float* y, int rows, int cols) {
  const int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (r < rows && c < cols)
    y[size_t(c) * cols + r] = x[size_t(r) * cols + c];  //! out of bounds | y
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  transpose<<<dim3((cols + 15) / 16, (rows + 15) / 16), dim3(16, 16)>>>(x, y, rows, cols);
}
