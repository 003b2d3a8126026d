// case: softmax

// The maximum of a row by atomicMax on integers in the order of the floats.
#include <cuda_runtime.h>

__device__ unsigned ordered(float v) {
  const unsigned bits = __float_as_uint(v);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ float restored(unsigned bits) {
  return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}
__global__ void softmax(const float* x, float* y, int cols) {
  __shared__ unsigned most;
  __shared__ float parts[64];
  x += size_t(blockIdx.x) * cols;
  y += size_t(blockIdx.x) * cols;
  if (threadIdx.x == 0)
    most = 0;
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += 64)
    if (!isnan(x[c]))
      atomicMax(&most, ordered(x[c]));
  __syncthreads();
  const float m = restored(most);
  float sum = 0;
  for (int c = threadIdx.x; c < cols; c += 64)
    sum += expf(x[c] - m);
  parts[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (float part : parts)
    sum += part;
  for (int c = threadIdx.x; c < cols; c += 64)
    y[c] = expf(x[c] - m) / sum;
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  softmax<<<rows, 64>>>(x, y, cols);
}
