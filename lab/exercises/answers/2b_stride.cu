// Model answer: in each step the 256 threads read 256 neighbours and then advance together.
#include <cuda_runtime.h>

__global__ void reduce(const float* in, float* out, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) {
    sum += in[i];
  }
  __shared__ float part[256];
  const int t = threadIdx.x;
  part[t] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) {
      part[t] += part[t + half];
    }
    __syncthreads();
  }
  if (t == 0) {
    *out = part[0];
  }
}

extern "C" void solve(const float* x, float* y, int n) { reduce<<<1, 256>>>(x, y, n); }
