// Sums in an accumulator of a number format, for the ops whose sums a model simulates
// (AccumulationRule in core/precision/simulated_formats.h), and for accumulated_matmul().
#pragma once
#include <binade/core/autograd/op.h>
#include <binade/core/precision/format_scheme.h>

namespace binade::detail {

// How the running module wants the sums of this op; null: as always.
const Accumulation* simulated_sum(const Op& op);

// a[.., m, k] b[.., k, n] of one dtype, with batches that broadcast, recorded as `op`. The products
// of its backward are summed the same way; a gradient that is summed over broadcast batches is not.
Tensor accumulated_product(const Op& op, const Tensor& a, const Tensor& b, const Accumulation& sum);

// x[rows, in] w[out, in]^T, and b[out] added to the rounded sums; b may be undefined. Recorded as
// `op`. All three gradients are summed the same way.
Tensor accumulated_linear(const Op& op, const Tensor& x, const Tensor& w, const Tensor& b,
                          const Accumulation& sum);

// y = the sums of x over the dimensions where y has size 1, divided by `count`. y has the rank of
// x. Nothing is recorded.
void accumulate_elements(const Tensor& x, const Tensor& y, double count, const Accumulation& sum);

}  // namespace binade::detail
