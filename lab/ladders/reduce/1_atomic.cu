// Sum, step 1: one atomic addition for each element.
// Idea: every thread adds its element to the result. atomicAdd makes that safe.
// Expected gain: none, this is the start. All n additions go to one address, one after another.
// Their order differs from run to run, and so do the last bits of the sum.
//
// Counted (65536): global 4096 requests 10240 sectors, shared 0 requests 0 passes, 0 barriers,
// 0 shuffles, 65536 atomics, 0 products
#include <cuda_runtime.h>

__global__ void reduce(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(out, in[i]);
  }
}

extern "C" void solve(const float* x, float* y, int n) {
  cudaMemsetAsync(y, 0, sizeof(float));
  if (n > 0) {
    reduce<<<(n + 255) / 256, 256>>>(x, y, n);
  }
}
