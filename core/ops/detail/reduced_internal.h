// Shared by reductions and selections: the reduced dimensions, results without them, and recording.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {
struct Op;
}

namespace binade::detail {

// The sizes of x with the reduced dimensions set to 1. Empty dims means all dimensions. Invalid
// dims are errors in the name of `op`.
Dims kept_sizes(const char* op, const Tensor& x, const Dims& dims);

// A view of y [.., 1, ..] without the dimensions that were reduced.
Tensor drop_reduced(const char* op, const Tensor& y, const Dims& dims);

// The result of `op` on x from y [.., 1, ..]: in x's dtype, without the reduced dimensions unless
// keepdim.
Tensor finish_reduction(const char* op, const Tensor& x, const Tensor& y, const Dims& dims,
                        bool keepdim);

// A scalar as a tensor of one dimension; other tensors unchanged. Without history.
inline Tensor at_least_1d(const Tensor& x) { return x.dim() > 0 ? x : make_view(x, {1}, {1}); }

// Records values that the op chose from x along dim by indices [.., k, ..]: the gradient goes back
// to these positions. `values` has the elements in that order, with any sizes.
Tensor record_chosen(const Op& op, const Tensor& x, int dim, const Tensor& values,
                     const Tensor& indices);

}  // namespace binade::detail
