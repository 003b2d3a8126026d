// case: histogram

// Lanes with the same value are counted together: __match_any_sync and one atomic for them.
#include <cuda_runtime.h>

__global__ void count(const int* x, int* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  const unsigned alive = __ballot_sync(~0u, i < n);
  if (i >= n)
    return;
  const unsigned same = __match_any_sync(alive, x[i]);
  if (__ffs(same) - 1 == threadIdx.x % 32)
    atomicAdd(y + x[i], __popc(same));
}
extern "C" void solve(const int* x, int* y, int n, int bins) {
  cudaMemsetAsync(y, 0, bins * sizeof(int), 0);
  count<<<(n + 63) / 64, 64>>>(x, y, n);
}
