// case: layer_norm
// Every thread reads its whole row, twice, without a barrier: slow, but not endless.
#include <cuda_runtime.h>

__global__ void normalize(const float* x, const float* w, const float* b, float* y, int cols,
                          float eps) {
  const float* row = x + size_t(blockIdx.x) * cols;
  float sum = 0, squares = 0;
  for (int i = 0; i < cols; ++i) {
    sum += row[i];
  }
  const float mean = sum / cols;
  for (int i = 0; i < cols; ++i) {
    squares += (row[i] - mean) * (row[i] - mean);
  }
  const float scale = rsqrtf(squares / cols + eps);
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    y[size_t(blockIdx.x) * cols + i] = (row[i] - mean) * scale * w[i] + b[i];
  }
}

extern "C" void solve(const float* x, const float* w, const float* b, float* y, int rows, int cols,
                      float eps) {
  normalize<<<rows, 512>>>(x, w, b, y, cols, eps);
}
