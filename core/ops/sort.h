// Sorting, selection, order statistics, running sums and differences along one dimension.
#pragma once
#include <binade/core/ops/reduce.h>

#include <optional>

namespace binade {

// The elements sorted along dim, and their indices in x. The sort is stable in both directions; NaN
// counts as the largest. Any dtype; the gradient goes back to the elements' positions.
ValuesIndices sort(const Tensor& x, int dim = -1, bool descending = false);
// The indices of sort; no gradient.
Tensor argsort(const Tensor& x, int dim = -1, bool descending = false);
// The k largest or smallest elements along dim, in sorted order; at a tie the first ones.
ValuesIndices topk(const Tensor& x, int64_t k, int dim = -1, bool largest = true);

// The middle element of all or along dim, and its index; of an even number of elements the lower of
// the two in the middle; the first NaN if there is one. At least one element; any dtype. The
// gradient goes to the chosen element.
Tensor median(const Tensor& x);
ValuesIndices median(const Tensor& x, int dim, bool keepdim = false);
// The element at position q (n - 1) of the n sorted elements, 0 <= q <= 1, interpolated linearly
// between two elements; NaN if there is a NaN. Without dim: of all elements. For q [k] the result
// has k as an additional first dimension; on a device the host waits for q's values. Floating.
Tensor quantile(const Tensor& x, double q, std::optional<int> dim = std::nullopt,
                bool keepdim = false);
Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int> dim = std::nullopt,
                bool keepdim = false);

// x_1 - x_0, x_2 - x_1, ... along dim, n times. Floating.
Tensor diff(const Tensor& x, int64_t n = 1, int dim = -1);
// y_i = x_0 + ... + x_i along dim. Any dtype; integers and bool give i64.
Tensor cumsum(const Tensor& x, int dim);
// The largest (smallest) of x_0 ... x_i along dim, and its index: of equal elements the last one.
// After a NaN all values are NaN. Any dtype; the gradient goes to the chosen elements.
ValuesIndices cummax(const Tensor& x, int dim);
ValuesIndices cummin(const Tensor& x, int dim);
// y_i = log(exp(x_0) + ... + exp(x_i)) along dim, without overflow. Floating.
Tensor logcumsumexp(const Tensor& x, int dim);
// y_i = x_0 ... x_i along dim. Floating, i64, i32. The gradient is exact with zeros, too.
Tensor cumprod(const Tensor& x, int dim);

}  // namespace binade
