// case: elementwise

// float4 loads and stores, scalar tail, 64-bit indices.
#include <cuda_runtime.h>

template <class F>
__global__ void map4(const float4* x, const float4* b, float4* y, size_t n, F f) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n / 4)
    return;
  const float4 v = __ldg(x + i), w = b[i];
  y[i] = make_float4(f(v.x, w.x), f(v.y, w.y), f(v.z, w.z), f(v.w, w.w));
}
template <class F>
__global__ void map_tail(const float* x, const float* b, float* y, size_t n, F f) {
  const size_t i = n / 4 * 4 + threadIdx.x;
  if (i < n)
    y[i] = f(x[i], b[i]);
}
struct Scale {
  float alpha;
  __device__ float operator()(float x, float b) const { return alpha * x + b; }
};
extern "C" void solve(const float* x, const float* b, float* y, size_t n, float alpha) {
  const Scale f{alpha};
  map4<<<unsigned(n / 4 / 64 + 1), 64>>>(reinterpret_cast<const float4*>(x),
                                         reinterpret_cast<const float4*>(b),
                                         reinterpret_cast<float4*>(y), n, f);
  map_tail<<<1, 4>>>(x, b, y, n, f);
}
