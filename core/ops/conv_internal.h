// What conv2d_batch_norm asks of the convolution. Internal to core.
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/conv/conv2d.h>

namespace binade {

// relu?((x * w) scale + shift + residual) in f32 on the CPU, never recorded.
struct FinishedConv2d {
  const Tensor& x;
  const Tensor& w;
  const kernels::Conv2dGeometry& geometry;
  const Tensor& scale;     // [O]
  const Tensor& shift;     // [O]
  const Tensor& residual;  // of the result's shape, or undefined
  bool relu;
};
Tensor finished_conv2d(const FinishedConv2d& a);

}  // namespace binade
