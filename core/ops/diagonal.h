// Diagonals of a matrix, or of two dimensions. A negative dim counts from the end. All are
// differentiable any number of times, in every dtype.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// The elements [.., i, .., i + offset, ..] of dim1 and dim2, as the last dimension of a view.
Tensor diagonal(const Tensor& x, int64_t offset = 0, int dim1 = 0, int dim2 = 1);
// The inverse: zeros, with the last dimension of x on a diagonal of the new dimensions.
Tensor diag_embed(const Tensor& x, int64_t offset = 0, int dim1 = -2, int dim2 = -1);
Tensor diag(const Tensor& x, int64_t offset = 0);  // diag_embed of a vector, diagonal of a matrix

}  // namespace binade
