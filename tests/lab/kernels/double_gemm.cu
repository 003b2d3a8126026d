// case: gemm

// Doubles, unsigned sizes, and a program of its own in the file.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void multiply(const double* a, const double* b, double* y, unsigned m, unsigned n,
                         unsigned k) {
  const unsigned c = blockIdx.x * blockDim.x + threadIdx.x,
                 r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= m || c >= n)
    return;
  double sum = 0;
  for (unsigned i = 0; i < k; ++i)
    sum = fma(a[size_t(r) * k + i], b[size_t(i) * n + c], sum);
  y[size_t(r) * n + c] = sum;
}
extern "C" void solve(const double* a, const double* b, double* y, unsigned m, unsigned n,
                      unsigned k) {
  const dim3 block(16, 4);
  multiply<<<dim3((n + 15) / 16, (m + 3) / 4), block>>>(a, b, y, m, n, k);
  if (cudaGetLastError() != cudaSuccess)
    std::printf("launch failed\n");
}
int main() { return 0; }
