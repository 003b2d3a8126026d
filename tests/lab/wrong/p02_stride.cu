// case: transpose

// Stores that are a row apart.
#include <cuda_runtime.h>

__global__ void turn(const float* x, float* y, int rows, int cols) {
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y;
  if (c < cols)
    y[c * rows + r] = x[r * cols + c];  //! uncoalesced | | performance
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  turn<<<dim3((cols + 31) / 32, rows), 32>>>(x, y, rows, cols);
}
