// case: layer_norm

// Squares summed in __half, which holds at most 65504.
#include <cuda_runtime.h>

#include <cuda_fp16.h>

__global__ void layer_norm(const __half* x, const __half* w, const __half* b, __half* y, int cols,
                           float eps) {
  const __half* row = x + size_t(blockIdx.x) * cols;
  float mean = 0;
  for (int c = 0; c < cols; ++c)
    mean += __half2float(row[c]) / cols;
  __half squares = __float2half(0.0f);
  for (int c = 0; c < cols; ++c) {
    const __half d = __float2half(__half2float(row[c]) - mean);
    squares = __hadd(squares, __hmul(d, d));  //! wrong numbers | y
  }
  const float rstd = rsqrtf(__half2float(squares) / cols + eps);
  for (int c = threadIdx.x; c < cols; c += 32)
    y[size_t(blockIdx.x) * cols + c] = __float2half(
        (__half2float(row[c]) - mean) * rstd * __half2float(w[c]) + __half2float(b[c]));
}
extern "C" void solve(const __half* x, const __half* w, const __half* b, __half* y, int rows,
                      int cols, float eps) {
  layer_norm<<<rows, 32>>>(x, w, b, y, cols, eps);
}
