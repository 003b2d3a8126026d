// Transpose, step 1: one thread moves one element.
// Idea: out[c][r] = in[r][c], with neighbouring threads along the columns of the input.
// Expected gain: none, this is the start. Reads are contiguous, 4 sectors a request; writes are one
// row of the output apart, 32 sectors a request.
//
// Counted (64x64): global 256 requests 4608 sectors, shared 0 requests 0 passes, 0 barriers, 0
// shuffles, 0 atomics, 0 products
#include <cuda_runtime.h>

__global__ void transpose(const float* in, float* out, int rows, int cols) {
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  if (r < rows && c < cols) {
    out[size_t(c) * rows + r] = in[size_t(r) * cols + c];
  }
}

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  const dim3 grid((cols + 31) / 32, (rows + 31) / 32);
  transpose<<<grid, dim3(32, 32)>>>(x, y, rows, cols);
}
