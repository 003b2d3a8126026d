// Largest and smallest elements, where they are, and any and all. dims empty: all dimensions;
// keepdim leaves the reduced ones with size 1. A NaN among the elements is the result, of largest
// and smallest alike.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// Elements and their indices (i64) along a dimension.
struct ValuesIndices {
  Tensor values, indices;
};

// Largest and smallest elements; ties share the gradient equally. Any dtype. Where the result is
// NaN, amax and amin give the gradient NaN to all elements it was taken from; max and min share the
// gradient among the NaN. As in PyTorch.
Tensor amax(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor max(const Tensor& x);  // of all elements
Tensor min(const Tensor& x);
// Along one dimension, with the index of the first of ties, which gets the gradient. Floating, i64,
// i32.
ValuesIndices max(const Tensor& x, int dim, bool keepdim = false);
ValuesIndices min(const Tensor& x, int dim, bool keepdim = false);

// Index (i64) of the first largest or smallest element: of all in row-major order, or along dim. No
// gradient.
Tensor argmax(const Tensor& x);
Tensor argmin(const Tensor& x);
Tensor argmax(const Tensor& x, int dim, bool keepdim = false);
Tensor argmin(const Tensor& x, int dim, bool keepdim = false);

// Whether any or all elements are not 0: bool, no gradient. Any dtype.
Tensor any(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor all(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

}  // namespace binade
