// case: transpose

// The leading dimension is ignored.
#include <cuda_runtime.h>

__global__ void turn(const float* x, float* y, int rows, int cols, int ldx) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < rows * cols)
    y[i % cols * rows + i / cols] = x[i];  //! out of bounds | x
}
extern "C" void solve(const float* x, float* y, int rows, int cols, int ldx) {
  turn<<<(rows * cols + 127) / 128, 128>>>(x, y, rows, cols, ldx);
}
