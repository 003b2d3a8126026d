// case: layer_norm

// Sums of a block in a static __shared__ array of a device function, called twice.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
__inline__ __device__ float warpReduceSum(float val) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1)
    val += __shfl_xor_sync(0xffffffff, val, mask, 32);
  return val;
}
__inline__ __device__ float blockReduceSum(float val) {
  static __shared__ float shared[32];
  int lane = threadIdx.x & 0x1f;
  int wid = threadIdx.x >> 5;
  val = warpReduceSum(val);
  if (lane == 0)
    shared[wid] = val;
  __syncthreads();
  val = (threadIdx.x < (blockDim.x / 32.f)) ? shared[lane] : 0.0f;
  val = warpReduceSum(val);
  return val;
}
__global__ void ln(const __half* __restrict__ x, const __half* w, const __half* b, __half* y,
                   int cols, float eps) {
  __shared__ float s_mean, s_rstd;
  const __half* row = x + (long long)blockIdx.x * cols;
  float v = 0.f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x)
    v += __half2float(row[i]);
  v = blockReduceSum(v);
  if (threadIdx.x == 0)
    s_mean = v / cols;
  __syncthreads();
  float mean = s_mean, q = 0.f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    float d = __half2float(row[i]) - mean;
    q += d * d;
  }
  q = blockReduceSum(q);
  if (threadIdx.x == 0)
    s_rstd = rsqrtf(q / cols + eps);
  __syncthreads();
  for (int i = threadIdx.x; i < cols; i += blockDim.x)
    y[(long long)blockIdx.x * cols + i] = __float2half(
        (__half2float(row[i]) - mean) * s_rstd * __half2float(w[i]) + __half2float(b[i]));
}
extern "C" void solve(const __half* x, const __half* w, const __half* b, __half* y, int rows,
                      int cols, float eps) {
  ln<<<rows, 256>>>(x, w, b, y, cols, eps);
}
