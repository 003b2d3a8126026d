// Sorting, selection and running sums along one dimension.
#pragma once
#include <binade/core/ops/extremes.h>

namespace binade {

// The elements sorted along dim, and their indices in x. The sort is stable in both directions; NaN
// counts as the largest. Any dtype; the gradient goes back to the elements' positions.
ValuesIndices sort(const Tensor& x, int dim = -1, bool descending = false);
// The k largest or smallest elements along dim, in sorted order; at a tie the first ones.
ValuesIndices topk(const Tensor& x, int64_t k, int dim = -1, bool largest = true);

// y_i = x_0 + ... + x_i along dim. Any dtype; integers and bool give i64.
Tensor cumsum(const Tensor& x, int dim);
// y_i = x_0 ... x_i along dim. Floating, i64, i32. The gradient is exact with zeros, too.
Tensor cumprod(const Tensor& x, int dim);

}  // namespace binade
