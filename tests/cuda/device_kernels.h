// Small kernels for tests of the runtime on the emulated device; arrays and the fixture are in
// device_fixture.h.
#pragma once
#include <binade/core/device/graph.h>
#include <binade/core/device/stream.h>
#include <binade/kernels/cuda/runtime_api_internal.h>
#include <binade/kernels/host/queue.h>
#include <tests/cuda/device_fixture.h>
#include <binade/kernels/cuda/device.cuh>

namespace binade {

inline __global__ void scale_kernel(const float* x, float* y, int n, float factor) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    y[i] = factor * x[i];
  }
}

// y = factor * x on the current stream.
inline void scale(const View& x, const View& y, float factor) {
  const kernels::KernelCall call("scale", y);
  const auto n = static_cast<int>(y.numel);
  kernels::launch({"scale_kernel", dim3(static_cast<unsigned>((n + 63) / 64)), dim3(64)},
                  scale_kernel, x.as<float>(), y.as<float>(), n, factor);
}

inline __global__ void sum_kernel(const float* a, const float* b, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    y[i] = a[i] + b[i];
  }
}

inline void sum(const View& a, const View& b, const View& y) {
  const kernels::KernelCall call("sum", y);
  const auto n = static_cast<int>(y.numel);
  kernels::launch({"sum_kernel", dim3(static_cast<unsigned>((n + 63) / 64)), dim3(64)}, sum_kernel,
                  a.as<float>(), b.as<float>(), y.as<float>(), n);
}

// A lane that does not take part in a barrier of its block.
inline __global__ void divergent_barrier_kernel() {
  if (threadIdx.x > 0) {
    __syncthreads();
  }
}

}  // namespace binade
