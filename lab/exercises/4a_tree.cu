// Exercise 4a, reductions and races: the tree has no barriers between its levels.
// Fault: one level reads what another warp has not written yet.
//
// Check: binade kernel lab/exercises/4a_tree.cu --case reduce
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
  }
  if (t == 0) {
    *out = part[0];
  }
}

extern "C" void solve(const float* x, float* y, int n) { reduce<<<1, 256>>>(x, y, n); }
