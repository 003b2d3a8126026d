// GEMM, step 9: tensor cores.
// Idea: a warp multiplies tiles of 16 x 16 with one instruction. a and b are FP16, sums are FP32. A
// block of 8 warps computes 64 x 64 elements, each warp 16 x 32 of them.
// Expected gain: one instruction of a warp computes 16 x 16 x 16 products instead of 32, and a and
// b take half of the bytes. The products are exact in FP32; the sums are rounded as before.
//
// Counted (64x64x64): global 384 requests 1024 sectors, shared 1088 requests 1408 passes, 72
// barriers, 0 shuffles, 0 atomics, 64 products
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

using namespace nvcuda;

constexpr int kTile = 64, kDepth = 16, kThreads = 256, kPadHalf = 8, kPadFloat = 4;

__global__ void gemm(const __half* a, const __half* b, float* c, int m, int n, int k) {
  __shared__ __align__(32) __half tile_a[kTile][kDepth];
  __shared__ __align__(32) __half tile_b[kDepth][kTile + kPadHalf];
  __shared__ __align__(32) float tile_c[kTile][kTile + kPadFloat];
  const int t = threadIdx.x, warp = t / 32;
  const int row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;
  const int y = warp / 2 * 16, x = warp % 2 * 32;  // the warp's place in the block's tile
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2];
  wmma::fill_fragment(sum[0], 0.0f);
  wmma::fill_fragment(sum[1], 0.0f);
  for (int k0 = 0; k0 < k; k0 += kDepth) {
    for (int i = t; i < kTile * kDepth; i += kThreads) {
      const int row = row0 + i / kDepth, ka = k0 + i % kDepth;
      tile_a[i / kDepth][i % kDepth] =
          row < m && ka < k ? a[size_t(row) * k + ka] : __float2half(0.0f);
      const int kb = k0 + i / kTile, col = col0 + i % kTile;
      tile_b[i / kTile][i % kTile] =
          kb < k && col < n ? b[size_t(kb) * n + col] : __float2half(0.0f);
    }
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::load_matrix_sync(left, &tile_a[y][0], kDepth);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      wmma::load_matrix_sync(right, &tile_b[0][x + 16 * j], kTile + kPadHalf);
      wmma::mma_sync(sum[j], left, right, sum[j]);
    }
    __syncthreads();  // before the tiles are overwritten
  }
  // The results go through shared memory, because a fragment cannot be cut at the matrix's edge.
  wmma::store_matrix_sync(&tile_c[y][x], sum[0], kTile + kPadFloat, wmma::mem_row_major);
  wmma::store_matrix_sync(&tile_c[y][x + 16], sum[1], kTile + kPadFloat, wmma::mem_row_major);
  __syncthreads();
  for (int i = t; i < kTile * kTile; i += kThreads) {
    const int row = row0 + i / kTile, col = col0 + i % kTile;
    if (row < m && col < n) {
      c[size_t(row) * n + col] = tile_c[i / kTile][i % kTile];
    }
  }
}

extern "C" void solve(const __half* a, const __half* b, float* y, int m, int n, int k) {
  const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  gemm<<<grid, kThreads>>>(a, b, y, m, n, k);
}
