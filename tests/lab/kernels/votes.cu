// case: scan

// A scan of one block with warp shuffles, and a barrier that votes.
#include <cuda_runtime.h>

__global__ void scan(const float* x, float* y, int n) {
  __shared__ float of_warp[32];
  __shared__ float carry;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (threadIdx.x == 0)
    carry = 0;
  for (int first = 0;; first += blockDim.x) {
    const int i = first + threadIdx.x;
    if (__syncthreads_count(i < n) == 0)
      break;
    float v = i < n ? x[i] : 0.0f;
    for (int o = 1; o < 32; o *= 2) {
      const float before = __shfl_up_sync(~0u, v, o);
      if (lane >= o)
        v += before;
    }
    if (lane == 31)
      of_warp[warp] = v;
    __syncthreads();
    float before = carry;
    for (int w = 0; w < warp; ++w)
      before += of_warp[w];
    v += before;
    if (i < n)
      y[i] = v;
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1)
      carry = v;
    __syncthreads();
  }
}
extern "C" void solve(const float* x, float* y, int n) { scan<<<1, 128>>>(x, y, n); }
