// case: stencil

// Weights in __constant__ memory, copied there by the host; dynamic shared memory of the file.
#include <cuda_runtime.h>

__constant__ float weights[5];
extern __shared__ float row_above[];

__global__ void smooth(const float* x, float* y, int rows, int cols) {
  const int r = blockIdx.x;
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    row_above[c] = r > 0 ? x[(r - 1) * cols + c] : 0.0f;
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    float sum = weights[0] * x[r * cols + c] + weights[1] * row_above[c];
    if (c > 0)
      sum += weights[2] * x[r * cols + c - 1];
    if (c + 1 < cols)
      sum += weights[3] * x[r * cols + c + 1];
    if (r + 1 < rows)
      sum += weights[4] * x[(r + 1) * cols + c];
    y[r * cols + c] = sum;
  }
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  const float fifth[5] = {0.2f, 0.2f, 0.2f, 0.2f, 0.2f};
  cudaMemcpyToSymbol(weights, fifth, sizeof(fifth));
  smooth<<<rows, 64, cols * sizeof(float)>>>(x, y, rows, cols);
}
