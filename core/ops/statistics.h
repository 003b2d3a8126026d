// Variance, norms, products and logsumexp. dims empty: all dimensions; keepdim leaves the reduced
// ones with size 1. f16 and bf16 are computed in f32 and rounded once.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// Mean squared deviation and its root, stable beside a large mean. Unbiased divides by n - 1 in
// place of n; the gradient of std is 0 where it is 0.
Tensor var(const Tensor& x, const Dims& dims = {}, bool unbiased = true, bool keepdim = false);
Tensor std(const Tensor& x, const Dims& dims = {}, bool unbiased = true, bool keepdim = false);

// (sum |x|^p)^(1/p); max and min |x| for p = inf and -inf, the number of elements that are not 0
// for p = 0. Gradient 0 at 0, shared at ties. As torch.linalg.vector_norm.
Tensor norm(const Tensor& x, double p = 2, const Dims& dims = {}, bool keepdim = false);

Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  // also i64, i32
Tensor logsumexp(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

}  // namespace binade
