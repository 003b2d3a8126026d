// What conv2d_batch_norm asks of the convolution. Internal to core.
#pragma once
#include <binade/core/ops/conv.h>

namespace binade {

// relu?((x * w) scale + shift + residual) in f32 on the CPU, never recorded.
struct FinishedConv2d {
  const Tensor& x;
  const Tensor& w;
  const Conv2dOptions& geometry;
  const Tensor& scale;     // [O]
  const Tensor& shift;     // [O]
  const Tensor& residual;  // of the result's shape, or undefined
  bool relu;
};
Tensor finished_conv2d(const FinishedConv2d& a);

}  // namespace binade
