// case: reduce

// __syncthreads() in the branch of a tree that only some threads take.
#include <cuda_runtime.h>

__global__ void sum(const float* x, float* y, int n) {
  __shared__ float s[128];
  float v = 0;
  for (int i = threadIdx.x; i < n; i += 128)
    v += x[i];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2)
    if (threadIdx.x < half) {
      s[threadIdx.x] += s[threadIdx.x + half];
      __syncthreads();  //! divergent barrier
    }
  if (threadIdx.x == 0)
    y[0] = s[0];
}
extern "C" void solve(const float* x, float* y, int n) { sum<<<1, 128>>>(x, y, n); }
