// case: transpose

// A tile without padding: 32 lanes in one bank.
#include <cuda_runtime.h>

__global__ void turn(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[32][32];
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  if (r < rows && c < cols)
    tile[threadIdx.y][threadIdx.x] = x[r * cols + c];
  __syncthreads();
  const int tc = blockIdx.y * 32 + threadIdx.x, tr = blockIdx.x * 32 + threadIdx.y;
  if (tr < cols && tc < rows)
    y[tr * rows + tc] = tile[threadIdx.x][threadIdx.y];  //! bank conflict | | performance
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  turn<<<dim3((cols + 31) / 32, (rows + 31) / 32), dim3(32, 32)>>>(x, y, rows, cols);
}
