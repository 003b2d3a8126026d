// Cosine similarity. Computed in f32 (f64 for f64) from inputs of any floating
// dtype; the result has that dtype.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim`; x1 and x2 broadcast.
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int dim = 1, double eps = 1e-8);

}  // namespace binade
