// case: attention

// Attention that never stores the scores: tiles of keys, with a running maximum and sum.
#include <cuda_runtime.h>

constexpr int kQueries = 16, kKeys = 16, kMost = 64;

__global__ void attend(const float* q, const float* k, const float* v, float* y, int seq, int dim,
                       float scale) {
  __shared__ float keys[kKeys][kMost + 1], values[kKeys][kMost + 1], queries[kQueries][kMost + 1];
  const size_t head = size_t(blockIdx.y) * seq * dim;
  const int first = blockIdx.x * kQueries, row = first + threadIdx.x;
  for (int i = threadIdx.x; i < kQueries * dim; i += blockDim.x) {
    const int r = first + i / dim;
    queries[i / dim][i % dim] = r < seq ? q[head + size_t(r) * dim + i % dim] : 0.0f;
  }
  float largest = -INFINITY, sum = 0, result[kMost];
  for (int d = 0; d < dim; ++d)
    result[d] = 0;
  for (int k0 = 0; k0 < seq; k0 += kKeys) {
    __syncthreads();
    for (int i = threadIdx.x; i < kKeys * dim; i += blockDim.x) {
      const int r = k0 + i / dim;
      keys[i / dim][i % dim] = r < seq ? k[head + size_t(r) * dim + i % dim] : 0.0f;
      values[i / dim][i % dim] = r < seq ? v[head + size_t(r) * dim + i % dim] : 0.0f;
    }
    __syncthreads();
    for (int j = 0; j < kKeys && k0 + j < seq; ++j) {
      float dot = 0;
      for (int d = 0; d < dim; ++d)
        dot += queries[threadIdx.x][d] * keys[j][d];
      dot *= scale;
      const float next = fmaxf(largest, dot), old = expf(largest - next), now = expf(dot - next);
      sum = sum * old + now;
      for (int d = 0; d < dim; ++d)
        result[d] = result[d] * old + now * values[j][d];
      largest = next;
    }
  }
  if (row < seq)
    for (int d = 0; d < dim; ++d)
      y[head + size_t(row) * dim + d] = result[d] / sum;
}
extern "C" void solve(const float* q, const float* k, const float* v, float* y, int heads, int seq,
                      int dim, float scale) {
  attend<<<dim3((seq + kQueries - 1) / kQueries, heads), kQueries>>>(q, k, v, y, seq, dim,
                                                                     scale / sqrtf(float(dim)));
}
