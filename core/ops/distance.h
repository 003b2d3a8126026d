// Distances, norms and angles between vectors. cosine_similarity is computed in f32 (f64 for f64)
// from inputs of any floating dtype; the result has that dtype.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim`; x1 and x2 broadcast.
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int dim = 1, double eps = 1e-8);

// x / max(|x|_p, eps), with the norm of order p along `dim`.
Tensor normalize(const Tensor& x, double p = 2, int dim = 1, double eps = 1e-12);

// |x1 - x2 + eps|_p along the last dimension; x1 and x2 broadcast.
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-6,
                         bool keepdim = false);

// The distances |x1_i - x2_j|_p of all pairs of rows: x1 [..., m, k], x2 [..., n, k] -> [..., m,
// n]; batches broadcast, p >= 0. Gradient 0 where a distance, or for p < 1 a difference, is 0. The
// differences are formed for every p, since x1 x2^T would lose the digits of small distances; for
// many pairs in parts, which backward computes again, so they take no memory.
Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2);

}  // namespace binade
