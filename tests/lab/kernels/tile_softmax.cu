// case: softmax

// A warp a row, with a tile of cooperative groups and the online sum.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
#include <float.h>
namespace cg = cooperative_groups;
__global__ void softmax_forward_kernel(float* __restrict__ out, const float* __restrict__ inp,
                                       int N, int C) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (idx >= N)
    return;
  const float* x = inp + (size_t)idx * C;
  float maxval = -INFINITY, sumval = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) {
    float old = maxval;
    maxval = fmaxf(maxval, x[i]);
    if (maxval != -INFINITY)
      sumval = sumval * expf(old - maxval) + expf(x[i] - maxval);
    if (isnan(x[i]))
      sumval = x[i];
  }
  float gmax = cg::reduce(warp, maxval, cg::greater<float>{});
  sumval *= maxval == -INFINITY ? 0.f : expf(maxval - gmax);
  float sum = cg::reduce(warp, sumval, cg::plus<float>{});
  float norm = 1.f / sum;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) {
    float ev = expf(__ldcs(&x[i]) - gmax);
    __stcs(out + (size_t)idx * C + i, ev * norm);
  }
}
extern "C" void solve(const float* x, float* y, int rows, int cols, cudaStream_t s) {
  const int block_size = 128;
  const int grid = (rows * 32 + block_size - 1) / block_size;
  softmax_forward_kernel<<<grid, block_size, 0, s>>>(y, x, rows, cols);
}
