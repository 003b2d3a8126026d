// case: elementwise

// An asynchronous copy that nobody waits for.
#include <cuda_runtime.h>

#include <cuda_pipeline.h>

__global__ void staged(const float* x, const float* b, float* y, int n, float alpha) {
  __shared__ alignas(16) float s[256];
  const int first = blockIdx.x * 256, i = first + threadIdx.x;
  if (threadIdx.x < 64 && first + 4 * threadIdx.x + 3 < n)
    __pipeline_memcpy_async(&s[4 * threadIdx.x], x + first + 4 * threadIdx.x, 16);
  __pipeline_commit();
  __syncthreads();
  const float v = i < n / 4 * 4 ? s[threadIdx.x] : x[min(i, n - 1)];  //! copy in flight | s
  if (i < n)
    y[i] = alpha * v + b[i];
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  staged<<<(n + 255) / 256, 256>>>(x, b, y, n, alpha);
}
