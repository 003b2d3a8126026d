// Reductions beside sum and mean. dims empty: all dimensions; keepdim leaves those reduced with
// size
// 1. f16 and bf16 are computed in f32 and rounded once. NaN is larger and smaller than everything.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// Elements and their indices (i64) along a dimension.
struct ValuesIndices {
  Tensor values, indices;
};

// Mean squared deviation and its root, stable beside a large mean. Unbiased divides by n - 1 in
// place of n; the gradient of std is 0 where it is 0.
Tensor var(const Tensor& x, const Dims& dims = {}, bool unbiased = true, bool keepdim = false);
Tensor std(const Tensor& x, const Dims& dims = {}, bool unbiased = true, bool keepdim = false);

// (sum |x|^p)^(1/p); max and min |x| for p = inf and -inf, the number of elements that are not 0
// for p = 0. Gradient 0 at 0, shared at ties. As torch.linalg.vector_norm.
Tensor norm(const Tensor& x, double p = 2, const Dims& dims = {}, bool keepdim = false);

Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  // also i64, i32
Tensor logsumexp(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

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
