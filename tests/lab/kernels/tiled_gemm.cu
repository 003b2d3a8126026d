// case: gemm

// A product in tiles of shared memory, with a block of registers a thread.
#include <cuda_runtime.h>

template <int kTile, int kStep, int kOwn>
__global__ void __launch_bounds__((kTile / kOwn) * (kTile / kOwn))
    multiply(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ y, int m,
             int n, int k) {
  __shared__ float left[kStep][kTile + 1], right[kStep][kTile];
  constexpr int kSide = kTile / kOwn, kThreads = kSide * kSide;
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  const int row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;
  float sum[kOwn][kOwn] = {};
  for (int k0 = 0; k0 < k; k0 += kStep) {
    for (int i = threadIdx.x; i < kTile * kStep; i += kThreads) {
      const int r = row0 + i / kStep, ka = k0 + i % kStep;
      left[i % kStep][i / kStep] = r < m && ka < k ? a[size_t(r) * k + ka] : 0.0f;
      const int c = col0 + i % kTile, kb = k0 + i / kTile;
      right[i / kTile][i % kTile] = kb < k && c < n ? b[size_t(kb) * n + c] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int s = 0; s < kStep; ++s)
      for (int i = 0; i < kOwn; ++i)
        for (int j = 0; j < kOwn; ++j)
          sum[i][j] += left[s][ty + kSide * i] * right[s][tx + kSide * j];
    __syncthreads();
  }
  for (int i = 0; i < kOwn; ++i)
    for (int j = 0; j < kOwn; ++j) {
      const int r = row0 + ty + kSide * i, c = col0 + tx + kSide * j;
      if (r < m && c < n)
        y[size_t(r) * n + c] = sum[i][j];
    }
}

static int ceil_div(int a, int b) { return (a + b - 1) / b; }

extern "C" void solve(int m, int n, int k, const float* a, const float* b, float* y,
                      cudaStream_t stream) {
  const dim3 grid(ceil_div(n, 32), ceil_div(m, 32));
  multiply<32, 8, 2><<<grid, 256, 0, stream>>>(a, b, y, m, n, k);
}
