// GEMM, step 5: a thread computes a square of results.
// Idea: a thread computes 4 x 4 elements. In each step it reads 4 elements of a and 4 of b into
// registers and forms all 16 products. Expected gain: 8 requests to shared memory for 16 products;
// a column of 16 would need 17.
//
// Counted (64x64x64): global 384 requests 1536 sectors, shared 4352 requests 4352 passes, 128
// barriers, 0 shuffles, 0 atomics, 0 products
#include <cuda_runtime.h>

constexpr int kTile = 64, kDepth = 8, kSide = 4, kThreads = 256;

__global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float tile_a[kTile][kDepth], tile_b[kDepth][kTile];
  const int t = threadIdx.x, x = t % 16, y = t / 16;  // handles columns x + 16 j, rows y + 16 i
  const int row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;
  float sum[kSide][kSide] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth) {
    for (int i = t; i < kTile * kDepth; i += kThreads) {
      const int row = row0 + i / kDepth, ka = k0 + i % kDepth;
      tile_a[i / kDepth][i % kDepth] = row < m && ka < k ? a[size_t(row) * k + ka] : 0.0f;
      const int kb = k0 + i / kTile, col = col0 + i % kTile;
      tile_b[i / kTile][i % kTile] = kb < k && col < n ? b[size_t(kb) * n + col] : 0.0f;
    }
    __syncthreads();
    for (int s = 0; s < kDepth; ++s) {
      float left[kSide], right[kSide];
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        left[i] = tile_a[y + 16 * i][s];
        right[i] = tile_b[s][x + 16 * i];
      }
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
#pragma unroll
        for (int j = 0; j < kSide; ++j) {
          sum[i][j] += left[i] * right[j];
        }
      }
    }
    __syncthreads();  // before the tiles are overwritten
  }
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      const int row = row0 + y + 16 * i, col = col0 + x + 16 * j;
      if (row < m && col < n) {
        c[size_t(row) * n + col] = sum[i][j];
      }
    }
  }
}

extern "C" void solve(const float* a, const float* b, float* y, int m, int n, int k) {
  const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  gemm<<<grid, kThreads>>>(a, b, y, m, n, k);
}
