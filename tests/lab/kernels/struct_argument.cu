// case: elementwise

// A struct and a functor as arguments of a kernel template in a namespace.
#include <cuda_runtime.h>
#include <utility>
struct Params {
  const float* x;
  const float* b;
  float* y;
  int n;
  float alpha;
};
namespace ops {
template <class F>
__global__ void map(Params p, F f) {
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < p.n; i += stride)
    p.y[i] = f(p.x[i], p.b[i]);
}
struct Axpb {
  float a;
  __host__ __device__ float operator()(float x, float b) const { return a * x + b; }
};
}  // namespace ops
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  Params p{x, b, y, n, alpha};
  int blocks, threads;
  cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, ops::map<ops::Axpb>);
  (void)blocks;
  ops::map<ops::Axpb><<<std::min(8, (n + 127) / 128), 128>>>(p, ops::Axpb{alpha});
}
