// Triangular parts. Differentiable any number of times, in every dtype.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// x [..., rows, cols] with zeros above (tril) or below (triu) the diagonal j - i = diagonal.
Tensor tril(const Tensor& x, int64_t diagonal = 0);
Tensor triu(const Tensor& x, int64_t diagonal = 0);

}  // namespace binade
