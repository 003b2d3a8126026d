// case: elementwise

// A launch in a lambda, a constant, and a loop unrolled by a template.
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdio>
__constant__ float c_alpha[1];
template <int N>
struct Unroll {
  template <class F>
  static __device__ void run(F f) {
    if constexpr (N > 0) {
      Unroll<N - 1>::run(f);
      f(N - 1);
    }
  }
};
__global__ void k(const float* x, const float* b, float* y, int n) {
  const int base = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  Unroll<4>::run([&](int j) {
    int i = base + j;
    if (i < n)
      y[i] = c_alpha[0] * x[i] + b[i];
  });
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  cudaMemcpyToSymbol(c_alpha, &alpha, sizeof(float));
  auto go = [&](int threads) { k<<<(n + 4 * threads - 1) / (4 * threads), threads>>>(x, b, y, n); };
  go(64);
  cudaError_t err = cudaPeekAtLastError();
  if (err != cudaSuccess)
    fprintf(stderr, "%s\n", cudaGetErrorName(err));
}
