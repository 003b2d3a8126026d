// Transpose, step 2: a tile in shared memory.
// Idea: a block copies a tile of 32 x 32 elements to shared memory along the rows of the input, and
// from there to the output along the rows of the output. Shared memory is read by columns.
// Expected gain: reads and writes of global memory take 4 sectors a request. But a column of the
// tile lies in one bank of shared memory: 32 words, 32 passes.
//
// Counted (64x64): global 256 requests 1024 sectors, shared 256 requests 4224 passes, 128
// barriers, 0 shuffles, 0 atomics, 0 products
#include <cuda_runtime.h>

constexpr int kTile = 32;

__global__ void transpose(const float* in, float* out, int rows, int cols) {
  __shared__ float tile[kTile][kTile];
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
