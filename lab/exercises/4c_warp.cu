// Exercise 4c, reductions and races: the last warp runs without barriers.
// Fault: lanes of a warp do not run in step. What orders their accesses to shared memory?
//
// Check: binade kernel lab/exercises/4c_warp.cu --case reduce
#include <cuda_runtime.h>

__global__ void reduce(const float* in, float* out, int n) {
  __shared__ float part[32];
  const int t = threadIdx.x;
  float sum = 0;
  for (int i = t; i < n; i += 32) {
    sum += in[i];
  }
  part[t] = sum;
  for (int half = 16; half > 0; half /= 2) {
    if (t < half) {
      part[t] += part[t + half];
    }
  }
  if (t == 0) {
    *out = part[0];
  }
}

extern "C" void solve(const float* x, float* y, int n) { reduce<<<1, 32>>>(x, y, n); }
