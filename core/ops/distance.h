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

}  // namespace binade
