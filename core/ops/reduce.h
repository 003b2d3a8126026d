// Sums and means. Empty dims means all dimensions; keepdim keeps the reduced dimensions with size
// 1. f16 and bf16 are summed in f32 and rounded once. The sum of integers or bools is i64 and
// wraps; their mean is an error.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

// Sums g down to `sizes`, which broadcast to the sizes of g: the gradient of a broadcast. Writes
// the result into `out` if it is defined.
Tensor sum_to(const Tensor& g, const Dims& sizes, const Tensor& out = {});

}  // namespace binade
