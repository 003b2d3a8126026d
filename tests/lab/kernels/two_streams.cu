// case: elementwise

// Two streams, an event between them, and memory of the stream.
#include <cuda_runtime.h>

__global__ void scale(const float* x, float* out, int n, float alpha) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  out[i] = alpha * x[i];
}
__global__ void add(const float* scaled, const float* b, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  y[i] = scaled[i] + b[i];
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  cudaStream_t first, second;
  cudaStreamCreate(&first);
  cudaStreamCreate(&second);
  cudaEvent_t done;
  cudaEventCreate(&done);
  float* scaled;
  cudaMallocAsync((void**)&scaled, n * sizeof(float), first);
  scale<<<(n + 63) / 64, 64, 0, first>>>(x, scaled, n, alpha);
  cudaEventRecord(done, first);
  cudaStreamWaitEvent(second, done, 0);
  add<<<(n + 63) / 64, 64, 0, second>>>(scaled, b, y, n);
  cudaStreamSynchronize(second);
  cudaFreeAsync(scaled, second);
  cudaEventDestroy(done);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
}
