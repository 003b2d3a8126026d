// The convolution that conv2d_batch_norm runs. Internal to core.
#pragma once
#include <binade/core/ops/conv.h>

namespace binade {

// relu?((x * w) scale + shift + residual) in f32 on the CPU, never recorded.
struct Conv2dWithEpilogue {
  const Tensor& x;
  const Tensor& w;
  const Conv2dOptions& geometry;
  const Tensor& scale;     // [O]
  const Tensor& shift;     // [O]
  const Tensor& residual;  // of the result's shape, or undefined
  bool relu;
};
Tensor conv2d_with_epilogue(const Conv2dWithEpilogue& a);

}  // namespace binade
