// A convolution and the batch norm after it.
#pragma once
#include <binade/core/ops.h>

namespace binade {

struct Conv2dOperands {  // of conv2d
  const Tensor& x;
  const Tensor& weight;
  const Tensor& bias;
  const Conv2dOptions& geometry;
};
struct BatchNormOperands {  // of batch_norm
  const Tensor& weight;
  const Tensor& bias;
  const Tensor& running_mean;
  const Tensor& running_var;
};

// batch_norm(conv2d(...), ...). In evaluation, without gradients, in f32 on the CPU this is one op
// named "conv2d": the norm is part of the convolution's epilogue, so its input is never written. In
// all other cases, under a precision policy and while an observer is registered, it is the two ops.
Tensor conv2d_batch_norm(const Conv2dOperands& conv, const BatchNormOperands& norm,
                         const BatchNormOptions& options);

// True if conv2d_batch_norm() would be one op now.
bool conv2d_batch_norm_is_one_op(const Conv2dOperands& conv, const BatchNormOperands& norm,
                                 const BatchNormOptions& options);

}  // namespace binade
