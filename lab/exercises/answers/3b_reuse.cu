// Model answer: a second barrier separates the reads of one tile from the writes of the next.
#include <cuda_runtime.h>

constexpr int kTile = 16;

__global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * kTile + y, col = blockIdx.x * kTile + x;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += kTile) {
    tile_a[y][x] = row < m && k0 + x < k ? a[size_t(row) * k + k0 + x] : 0.0f;
    tile_b[y][x] = k0 + y < k && col < n ? b[size_t(k0 + y) * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      sum += tile_a[y][i] * tile_b[i][x];
    }
    __syncthreads();  // all threads are done with the tiles
  }
  if (row < m && col < n) {
    c[size_t(row) * n + col] = sum;
  }
}

extern "C" void solve(const float* a, const float* b, float* y, int m, int n, int k) {
  const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  gemm<<<grid, dim3(kTile, kTile)>>>(a, b, y, m, n, k);
}
