// Another dtype, another device.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// x in another dtype, x itself where it has it. Differentiable between floating dtypes.
Tensor cast(const Tensor& x, DType dtype);

// x on `device`, x itself where it is there. The gradient moves back.
Tensor to_device(const Tensor& x, Device device);

}  // namespace binade
