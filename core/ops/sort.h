// Sorting, selection and running sums along one dimension.
#pragma once
#include <binade/core/ops/extremes.h>

namespace binade {

// Sorted along dim, with where each element was: stable in both directions, NaN as the largest. Any
// dtype; the gradient goes back to where the elements were.
ValuesIndices sort(const Tensor& x, int dim = -1, bool descending = false);
// The k largest or smallest along dim, in that order; the first of ties.
ValuesIndices topk(const Tensor& x, int64_t k, int dim = -1, bool largest = true);

// y_i = x_0 + ... + x_i along dim. Floating, i64, i32.
Tensor cumsum(const Tensor& x, int dim);
// y_i = x_0 ... x_i along dim. Floating, i64, i32. The gradient is exact with zeros, too.
Tensor cumprod(const Tensor& x, int dim);

}  // namespace binade
