// Conversion to another dtype or device.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// x in another dtype; x itself if it already has this dtype. Differentiable between floating
// dtypes.
Tensor cast(const Tensor& x, DType dtype);

// x on `device`; x itself if it is already there. The gradient moves back.
Tensor to_device(const Tensor& x, Device device);

}  // namespace binade
