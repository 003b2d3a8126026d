// Change of dtype.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// x in another dtype, x itself where it has it. Differentiable between floating dtypes.
Tensor cast(const Tensor& x, DType dtype);

}  // namespace binade
