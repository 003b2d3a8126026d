// Exercise 5b, tensor cores: the layout of a fragment is wrong.
// Fault: the tile of b lies in shared memory row by row, but the fragment is declared otherwise.
//
// Check: binade kernel lab/exercises/5b_layout.cu --case gemm
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

using namespace nvcuda;

// One warp computes 16 x 16 elements.
__global__ void gemm(const __half* a, const __half* b, float* c, int m, int n, int k) {
  __shared__ __align__(32) __half tile_a[16][16], tile_b[16][16];
  __shared__ __align__(32) float tile_c[16][16];
  const int t = threadIdx.x, row0 = blockIdx.y * 16, col0 = blockIdx.x * 16;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k0 = 0; k0 < k; k0 += 16) {
    for (int i = t; i < 256; i += 32) {
      const int y = i / 16, x = i % 16;
      tile_a[y][x] =
          row0 + y < m && k0 + x < k ? a[size_t(row0 + y) * k + k0 + x] : __float2half(0.0f);
      tile_b[y][x] =
          k0 + y < k && col0 + x < n ? b[size_t(k0 + y) * n + col0 + x] : __float2half(0.0f);
    }
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
    wmma::load_matrix_sync(left, &tile_a[0][0], 16);
    wmma::load_matrix_sync(right, &tile_b[0][0], 16);
    wmma::mma_sync(sum, left, right, sum);
    __syncthreads();  // before the tiles are overwritten
  }
  wmma::store_matrix_sync(&tile_c[0][0], sum, 16, wmma::mem_row_major);
  __syncthreads();
  for (int i = t; i < 256; i += 32) {
    if (row0 + i / 16 < m && col0 + i % 16 < n) {
      c[size_t(row0 + i / 16) * n + col0 + i % 16] = tile_c[i / 16][i % 16];
    }
  }
}

extern "C" void solve(const __half* a, const __half* b, float* y, int m, int n, int k) {
  gemm<<<dim3((n + 15) / 16, (m + 15) / 16), 32>>>(a, b, y, m, n, k);
}
