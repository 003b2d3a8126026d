// case: gemm

// Tiles copied ahead by asynchronous copies, two buffers.
#include <cuda_runtime.h>

#include <cuda_pipeline.h>

constexpr int kTile = 32, kStep = 16;

__global__ void multiply(const float* a, const float* b, float* y, int m, int n, int k) {
  __shared__ alignas(16) float left[2][kTile][kStep];
  __shared__ alignas(16) float right[2][kStep][kTile];
  const int r0 = blockIdx.y * kTile, c0 = blockIdx.x * kTile, t = threadIdx.x;
  const bool whole = k % 4 == 0 && n % 4 == 0;
  auto fetch = [&](int k0, int to) {
    for (int i = t; i < kTile * kStep / 4; i += blockDim.x) {
      const int r = i / (kStep / 4), ka = i % (kStep / 4) * 4, kb = i / (kTile / 4),
                c = i % (kTile / 4) * 4;
      if (whole) {
        const bool in_a = r0 + r < m && k0 + ka < k, in_b = k0 + kb < k && c0 + c < n;
        __pipeline_memcpy_async(&left[to][r][ka], in_a ? &a[size_t(r0 + r) * k + k0 + ka] : a, 16,
                                in_a ? 0 : 16);
        __pipeline_memcpy_async(&right[to][kb][c], in_b ? &b[size_t(k0 + kb) * n + c0 + c] : b, 16,
                                in_b ? 0 : 16);
      } else {
        for (int j = 0; j < 4; ++j) {
          left[to][r][ka + j] =
              r0 + r < m && k0 + ka + j < k ? a[size_t(r0 + r) * k + k0 + ka + j] : 0.0f;
          right[to][kb][c + j] =
              k0 + kb < k && c0 + c + j < n ? b[size_t(k0 + kb) * n + c0 + c + j] : 0.0f;
        }
      }
    }
    __pipeline_commit();
  };
  const int tx = t % 16, ty = t / 16;
  float sum[2][2] = {};
  fetch(0, 0);
  for (int k0 = 0, now = 0; k0 < k; k0 += kStep, now ^= 1) {
    if (k0 + kStep < k)
      fetch(k0 + kStep, now ^ 1);
    __pipeline_wait_prior(k0 + kStep < k ? 1 : 0);
    __syncthreads();
    for (int s = 0; s < kStep; ++s)
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
          sum[i][j] += left[now][ty + 16 * i][s] * right[now][s][tx + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      if (r0 + ty + 16 * i < m && c0 + tx + 16 * j < n)
        y[size_t(r0 + ty + 16 * i) * n + c0 + tx + 16 * j] = sum[i][j];
}
extern "C" void solve(const float* a, const float* b, float* y, int m, int n, int k) {
  multiply<<<dim3((n + kTile - 1) / kTile, (m + kTile - 1) / kTile), 256>>>(a, b, y, m, n, k);
}
