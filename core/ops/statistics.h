// Variance, norms, distances between vectors, products and logsumexp. Empty dims means all
// dimensions; keepdim keeps the reduced dimensions with size 1. Reductions of f16 and bf16 are
// computed in f32 and rounded once.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// Variance and standard deviation, accurate also if the mean is large. unbiased divides by n - 1
// instead of n. The gradient of std is 0 where std is 0.
Tensor var(const Tensor& x, const Dims& dims = {}, bool unbiased = true, bool keepdim = false);
Tensor std(const Tensor& x, const Dims& dims = {}, bool unbiased = true, bool keepdim = false);

// (sum |x|^p)^(1/p); max and min |x| for p = inf and -inf, the number of elements that are not 0
// for p = 0. The gradient is 0 at 0 and shared at ties. As torch.linalg.vector_norm.
Tensor norm(const Tensor& x, double p = 2, const Dims& dims = {}, bool keepdim = false);

Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  // also i64, i32
Tensor logsumexp(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

// x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim`; x1 and x2 broadcast.
// Computed in f32 (f64 for f64) from inputs of one floating dtype, which the result has.
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int dim = 1, double eps = 1e-8);

// x / max(|x|_p, eps), with the norm of order p along `dim`. f16 is computed in f32.
Tensor normalize(const Tensor& x, double p = 2, int dim = 1, double eps = 1e-12);

// |x1 - x2 + eps|_p along the last dimension; x1 and x2 broadcast.
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-6,
                         bool keepdim = false);

// The distances |x1_i - x2_j|_p of all pairs of rows: x1 [..., m, k], x2 [..., n, k] -> [..., m,
// n]; batches broadcast, p >= 0. Gradient 0 where a distance, or for p < 1 a difference, is 0. The
// differences are formed for every p, since x1 x2^T would lose the digits of small distances. Many
// pairs are computed in parts; backward computes a part again, so it is not kept in memory.
Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2);

}  // namespace binade
