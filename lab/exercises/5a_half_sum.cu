// Exercise 5a, FP16 numerics: a sum loses its terms.
// Fault: the sum has 11 significant bits, and every addition is rounded to them.
//
// Check: binade kernel lab/exercises/5a_half_sum.cu --case gemm
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void gemm(const __half* a, const __half* b, float* c, int m, int n, int k) {
  const int row = blockIdx.y * 8 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
  if (row >= m || col >= n) {
    return;
  }
  __half sum = __float2half(0.0f);
  for (int i = 0; i < k; ++i) {
    sum = __hfma(a[size_t(row) * k + i], b[size_t(i) * n + col], sum);
  }
  c[size_t(row) * n + col] = __half2float(sum);
}

extern "C" void solve(const __half* a, const __half* b, float* y, int m, int n, int k) {
  const dim3 grid((n + 31) / 32, (m + 7) / 8);
  gemm<<<grid, dim3(32, 8)>>>(a, b, y, m, n, k);
}
