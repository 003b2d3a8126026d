// case: gemm

// The next tile is loaded while other threads still multiply by the previous one.
#include <cuda_runtime.h>

constexpr int kTile = 8;
__global__ void gemm(const float* a, const float* b, float* y, int m, int n, int k) {
  __shared__ float as[kTile][kTile], bs[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, col = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int first = 0; first < k; first += kTile) {
    const int i = first + threadIdx.x, j = first + threadIdx.y;
    as[threadIdx.y][threadIdx.x] = row < m && i < k ? a[size_t(row) * k + i] : 0;
    bs[threadIdx.y][threadIdx.x] = j < k && col < n ? b[size_t(j) * n + col] : 0;
    __syncthreads();
    for (int p = 0; p < kTile; ++p)
      sum += as[threadIdx.y][p] * bs[p][threadIdx.x];  //! missing barrier | as
  }
  if (row < m && col < n)
    y[size_t(row) * n + col] = sum;
}
extern "C" void solve(const float* a, const float* b, float* y, int m, int n, int k) {
  gemm<<<dim3((n + kTile - 1) / kTile, (m + kTile - 1) / kTile), dim3(kTile, kTile)>>>(a, b, y, m,
                                                                                       n, k);
}
