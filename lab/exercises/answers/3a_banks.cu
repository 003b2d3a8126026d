// Model answer: with 33 words a row, word [x][y] lies in bank (33 x + y) mod 32 = (x + y) mod 32.
#include <cuda_runtime.h>

constexpr int kTile = 32;

__global__ void transpose(const float* in, float* out, int rows, int cols) {
  __shared__ float tile[kTile][kTile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int r0 = blockIdx.y * kTile, c0 = blockIdx.x * kTile;
  if (r0 + y < rows && c0 + x < cols) {
    tile[y][x] = in[size_t(r0 + y) * cols + c0 + x];
  }
  __syncthreads();
  if (c0 + y < cols && r0 + x < rows) {
    out[size_t(c0 + y) * rows + r0 + x] = tile[x][y];
  }
}

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  const dim3 grid((cols + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  transpose<<<grid, dim3(kTile, kTile)>>>(x, y, rows, cols);
}
