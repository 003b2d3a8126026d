// Cosine similarity along one dimension: both operands are read once in each direction. x1, x2,
// dx1, dx2: one floating dtype, equal sizes, any strides (inputs also 0). y, inverse1, inverse2,
// dy: contiguous, in the compute dtype, of the sizes without `dim`. Squares are in range for every
// input: sums are f64 where float does not hold them.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// y = x1 . x2 / (max(|x1|, eps) max(|x2|, eps)), inverse1 = 1 / max(|x1|, eps), negative if eps is
// the larger one; inverse2 likewise.
struct CosineSimilarityForward {
  const View& x1;
  const View& x2;
  const View& y;
  const View& inverse1;
  const View& inverse2;
  int dim;
  double eps;
};
BINADE_KERNEL(cosine_similarity_forward, CosineSimilarityForward, y)

// dx1 = dy inverse1 (inverse2 x2 - y inverse1 x1), without the second term if eps was the larger
// one; dx2 likewise. kNoView if one is not wanted.
struct CosineSimilarityBackward {
  const View& x1;
  const View& x2;
  const View& y;
  const View& inverse1;
  const View& inverse2;
  const View& dy;
  const View& dx1;
  const View& dx2;
  int dim;
};
BINADE_KERNEL(cosine_similarity_backward, CosineSimilarityBackward, dy)

}  // namespace binade::kernels
