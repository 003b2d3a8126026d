// case: transpose

// A transpose of a matrix whose rows are ldx elements apart, through a padded tile.
#include <cuda_runtime.h>

constexpr int kTile = 32, kRows = 8;

__global__ void turn(const float* x, float* y, int rows, int cols, int ldx) {
  __shared__ float tile[kTile][kTile + 1];
  const int c = blockIdx.x * kTile + threadIdx.x;
  for (int i = threadIdx.y; i < kTile; i += kRows) {
    const int r = blockIdx.y * kTile + i;
    if (r < rows && c < cols)
      tile[i][threadIdx.x] = x[size_t(r) * ldx + c];
  }
  __syncthreads();
  const int tc = blockIdx.y * kTile + threadIdx.x;
  for (int i = threadIdx.y; i < kTile; i += kRows) {
    const int tr = blockIdx.x * kTile + i;
    if (tr < cols && tc < rows)
      y[size_t(tr) * rows + tc] = tile[threadIdx.x][i];
  }
}
extern "C" void solve(const float* x, float* y, int rows, int cols, int ldx) {
  turn<<<dim3((cols + kTile - 1) / kTile, (rows + kTile - 1) / kTile), dim3(kTile, kRows)>>>(
      x, y, rows, cols, ldx);
}
