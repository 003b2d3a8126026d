// The same on a GPU, forward only: one warp for each row. Binade's backward runs beside it.
#include <binade/kernels/base/user_kernel.h>

BINADE_USER_KERNELS(BINADE_ON_CUDA)

namespace {

constexpr unsigned kAllLanes = 0xffffffff;

__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, step));
  }
  return value;
}

__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, step);
  }
  return value;
}

__global__ void softmax_rows(const float* x, float* y, int64_t rows, int64_t cols, bool log) {
  const int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= rows) {
    return;  // whole warps
  }
  const float* from = x + row * cols;
  float* to = y + row * cols;
  float largest = -INFINITY, sum = 0;
  for (int64_t c = threadIdx.x; c < cols; c += 32) {
    largest = fmaxf(largest, from[c]);
  }
  largest = warp_max(largest);
  for (int64_t c = threadIdx.x; c < cols; c += 32) {
    sum += expf(from[c] - largest);
  }
  sum = warp_sum(sum);
  for (int64_t c = threadIdx.x; c < cols; c += 32) {
    const float shifted = from[c] - largest;
    to[c] = log ? shifted - logf(sum) : expf(shifted) / sum;
  }
}

}  // namespace

int binade_softmax_forward(const struct binade_softmax_forward_call* a,
                           const struct binade_launch* launch) {
  if (a->x.dtype != BINADE_F32) {
    return BINADE_DECLINED;
  }
  constexpr int kWarps = 8;
  const int64_t rows = a->x.size[0];
  softmax_rows<<<unsigned((rows + kWarps - 1) / kWarps), dim3(32, kWarps), 0,
                 static_cast<cudaStream_t>(launch->stream)>>>(static_cast<const float*>(a->x.data),
                                                              static_cast<float*>(a->y.data), rows,
                                                              a->x.size[1], a->log != 0);
  return cudaGetLastError() == cudaSuccess ? BINADE_DONE : 2;
}
