// Exercise 2a, coalescing: the result is right, but each request takes 32 sectors.
// Fault: neighbouring threads take neighbouring rows. Change the two index lines only.
//
// Check: binade kernel lab/exercises/2a_columns.cu --case gemm:64x64x64 --strict
#include <cuda_runtime.h>

__global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  const int row = blockIdx.y * 32 + threadIdx.x;
  const int col = blockIdx.x * 32 + threadIdx.y;
  if (row >= m || col >= n) {
    return;
  }
  float sum = 0;
  for (int i = 0; i < k; ++i) {
    sum += a[size_t(row) * k + i] * b[size_t(i) * n + col];
  }
  c[size_t(row) * n + col] = sum;
}

extern "C" void solve(const float* a, const float* b, float* y, int m, int n, int k) {
  const dim3 grid((n + 31) / 32, (m + 31) / 32);
  gemm<<<grid, dim3(32, 32)>>>(a, b, y, m, n, k);
}
