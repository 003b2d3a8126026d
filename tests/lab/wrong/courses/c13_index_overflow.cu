// case: transpose

// The index of an element in an int: row * 2^28 + column overflows from row 8 on.
#include <cuda_runtime.h>

__global__ void transpose(const float* x, float* y, int rows, int cols) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  const int r = i / cols, c = i % cols;
  if (r < rows) {
    const int key = r * (1 << 28) + c;  //! undefined arithmetic
    y[size_t(key & 0xfffffff) * rows + r] = x[size_t(r) * cols + c];
  }
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  transpose<<<(rows * cols + 63) / 64, 64>>>(x, y, rows, cols);
}
