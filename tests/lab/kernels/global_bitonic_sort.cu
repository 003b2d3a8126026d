// case: sort.json

// A sort with one launch a step, padded with infinity.
#include <cuda_runtime.h>
#include <math_constants.h>
__global__ void copy_pad(const float* x, float* t, int cols, int p2) {
  int r = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < p2)
    t[(size_t)r * p2 + c] = c < cols ? x[(size_t)r * cols + c] : CUDART_INF_F;
}
__global__ void step(float* t, int p2, int j, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float* row = t + (size_t)blockIdx.y * p2;
  int ixj = i ^ j;
  if (i < p2 && ixj > i) {
    bool up = (i & k) == 0;
    float a = row[i], b = row[ixj];
    if ((a > b) == up) {
      row[i] = b;
      row[ixj] = a;
    }
  }
}
__global__ void copy_back(const float* t, float* y, int cols, int p2) {
  int r = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < cols)
    y[(size_t)r * cols + c] = t[(size_t)r * p2 + c];
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  int p2 = 1;
  while (p2 < cols)
    p2 *= 2;
  float* t;
  cudaMalloc(&t, (size_t)rows * p2 * sizeof(float));
  dim3 g((p2 + 63) / 64, rows);
  copy_pad<<<g, 64>>>(x, t, cols, p2);
  for (int k = 2; k <= p2; k <<= 1)
    for (int j = k >> 1; j > 0; j >>= 1)
      step<<<g, 64>>>(t, p2, j, k);
  copy_back<<<g, 64>>>(t, y, cols, p2);
  cudaFree(t);
}
