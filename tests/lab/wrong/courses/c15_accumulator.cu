// case: gemm

// An accumulator in registers is not set to zero.
#include <cuda_runtime.h>

__global__ void gemm(const float* a, const float* b, float* y, int m, int n, int k) {
  const int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  if (row >= m || col >= n)
    return;
  float sum;
  for (int p = 0; p < k; ++p)
    sum += a[size_t(row) * k + p] * b[size_t(p) * n + col];
  y[size_t(row) * n + col] = sum;  //! uninitialised variable
}
extern "C" void solve(const float* a, const float* b, float* y, int m, int n, int k) {
  gemm<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(a, b, y, m, n, k);
}
