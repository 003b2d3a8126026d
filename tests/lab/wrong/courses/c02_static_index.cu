// case: softmax

// An index beyond a static __shared__ array: blocks have 128 threads, but there are 64 sums.
#include <cuda_runtime.h>

__global__ void softmax(const float* x, float* y, int cols) {
  __shared__ float sums[64], peaks[128];
  const float* row = x + size_t(blockIdx.x) * cols;
  float m = -INFINITY, sum = 0;
  for (int c = threadIdx.x; c < cols; c += 128)
    m = fmaxf(m, row[c]);
  peaks[threadIdx.x] = m;
  __syncthreads();
  for (int i = 0; i < 128; ++i)
    m = fmaxf(m, peaks[i]);
  for (int c = threadIdx.x; c < cols; c += 128)
    sum += expf(row[c] - m);
  sums[threadIdx.x] = sum + 0 * peaks[threadIdx.x];  //! out of bounds | sums
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 64; ++i)
    sum += sums[i];
  for (int c = threadIdx.x; c < cols; c += 128)
    y[size_t(blockIdx.x) * cols + c] = expf(row[c] - m) / sum;
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  softmax<<<rows, 128>>>(x, y, cols);
}
