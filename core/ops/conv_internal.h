// Internal to core.
#pragma once
#include <binade/core/tensor.h>
#include <binade/kernels/conv2d.h>

namespace binade {

// relu?((x * w) scale + shift + residual) in f32 on the CPU, never recorded: scale and shift [O],
// the residual of the result's shape or undefined.
Tensor finished_conv2d(const Tensor& x, const Tensor& w, const kernels::Conv2dGeometry& geometry,
                       const Tensor& scale, const Tensor& shift, const Tensor& residual, bool relu);

}  // namespace binade
