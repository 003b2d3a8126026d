// case: attention

// Scores, softmax in place and the weighted sum, a launch each.
#include <cuda_runtime.h>
#include <math.h>
__global__ void qk(const float* q, const float* k, float* s, int seq, int dim, float f) {
  int h = blockIdx.z, i = blockIdx.y * blockDim.y + threadIdx.y,
      j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= seq || j >= seq)
    return;
  float v = 0;
  for (int d = 0; d < dim; d++)
    v += q[(h * seq + i) * dim + d] * k[(h * seq + j) * dim + d];
  s[(h * seq + i) * seq + j] = v * f;
}
__global__ void sm(float* s, int seq) {
  float* row = s + (size_t)blockIdx.x * seq;
  __shared__ float red[128];
  float m = -1e30f;
  for (int j = threadIdx.x; j < seq; j += 128)
    m = fmaxf(m, row[j]);
  red[threadIdx.x] = m;
  __syncthreads();
  for (int o = 64; o; o >>= 1) {
    if (threadIdx.x < o)
      red[threadIdx.x] = fmaxf(red[threadIdx.x], red[threadIdx.x + o]);
    __syncthreads();
  }
  m = red[0];
  __syncthreads();
  float t = 0;
  for (int j = threadIdx.x; j < seq; j += 128) {
    row[j] = expf(row[j] - m);
    t += row[j];
  }
  red[threadIdx.x] = t;
  __syncthreads();
  for (int o = 64; o; o >>= 1) {
    if (threadIdx.x < o)
      red[threadIdx.x] += red[threadIdx.x + o];
    __syncthreads();
  }
  float inv = 1.0f / red[0];
  for (int j = threadIdx.x; j < seq; j += 128)
    row[j] *= inv;
}
__global__ void pv(const float* s, const float* v, float* y, int seq, int dim) {
  int h = blockIdx.z, i = blockIdx.y, d = threadIdx.x;
  for (; d < dim; d += blockDim.x) {
    float acc = 0;
    for (int j = 0; j < seq; ++j)
      acc += s[(h * seq + i) * seq + j] * v[(h * seq + j) * dim + d];
    y[(h * seq + i) * dim + d] = acc;
  }
}
extern "C" void solve(const float* q, const float* k, const float* v, float* y, int heads, int seq,
                      int dim, float scale) {
  float* s;
  cudaMalloc(&s, sizeof(float) * heads * seq * seq);
  qk<<<dim3((seq + 15) / 16, (seq + 15) / 16, heads), dim3(16, 16)>>>(q, k, s, seq, dim,
                                                                      scale / sqrtf((float)dim));
  sm<<<heads * seq, 128>>>(s, seq);
  pv<<<dim3(1, seq, heads), 64>>>(s, v, y, seq, dim);
  cudaFree(s);
}
