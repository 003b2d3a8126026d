// Model answer: the product of two halves is exact in float, and the sum keeps 24 bits.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void gemm(const __half* a, const __half* b, float* c, int m, int n, int k) {
  const int row = blockIdx.y * 8 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
  if (row >= m || col >= n) {
    return;
  }
  float sum = 0;
  for (int i = 0; i < k; ++i) {
    sum += __half2float(a[size_t(row) * k + i]) * __half2float(b[size_t(i) * n + col]);
  }
  c[size_t(row) * n + col] = sum;
}

extern "C" void solve(const __half* a, const __half* b, float* y, int m, int n, int k) {
  const dim3 grid((n + 31) / 32, (m + 7) / 8);
  gemm<<<grid, dim3(32, 8)>>>(a, b, y, m, n, k);
}
