// Sums and means, largest and smallest elements, any and all. Empty dims means all dimensions;
// keepdim keeps the reduced dimensions with size 1.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// f16 and bf16 are summed in f32 and rounded once. The sum of integers or bools is i64 and wraps;
// their mean is an error.
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

// The same of the elements that are not NaN. The mean of none is NaN; nansum takes integers, too.
Tensor nansum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor nanmean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

// Sums g down to `sizes`, which broadcast to the sizes of g: the gradient of a broadcast. Writes
// the result into `out` if it is defined.
Tensor sum_to(const Tensor& g, const Dims& sizes, const Tensor& out = {});

// Elements and their indices (i64) along a dimension.
struct ValuesIndices {
  Tensor values, indices;
};

// Largest and smallest elements; ties share the gradient equally. Any dtype. If the result is NaN,
// amax and amin give the gradient NaN to all elements that were reduced; max and min share the
// gradient among the NaN elements. This is as in PyTorch. If an element is NaN, the largest and the
// smallest element are NaN.
Tensor amax(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor max(const Tensor& x);  // of all elements
Tensor min(const Tensor& x);
// The largest and smallest elements along one dimension, and their indices. At a tie the first
// element is chosen and gets the gradient. Floating, i64, i32.
ValuesIndices max(const Tensor& x, int dim, bool keepdim = false);
ValuesIndices min(const Tensor& x, int dim, bool keepdim = false);

// Index (i64) of the first largest or smallest element: of all in row-major order, or along dim. No
// gradient.
Tensor argmax(const Tensor& x);
Tensor argmin(const Tensor& x);
Tensor argmax(const Tensor& x, int dim, bool keepdim = false);
Tensor argmin(const Tensor& x, int dim, bool keepdim = false);

// True if any or all elements are not 0. The result is bool, without gradient. Any dtype.
Tensor any(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor all(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

}  // namespace binade
