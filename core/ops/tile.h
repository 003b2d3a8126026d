// Repetition. Differentiable any number of times, in every dtype.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// x as often as `repeats` says in each dimension; leading repeats make new dimensions.
Tensor repeat(const Tensor& x, const Dims& repeats);
// The same where there may be fewer repeats than dimensions: they count from the last.
Tensor tile(const Tensor& x, const Dims& repeats);

}  // namespace binade
