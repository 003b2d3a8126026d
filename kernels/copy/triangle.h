// Triangular parts of matrices.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// y[..., i, j] = x[..., i, j] where j - i <= diagonal (upper: >= diagonal), else 0. x and y have
// the same dtype (any), the same sizes (at least two dimensions) and any strides. y may be x.
struct Triangle {
  const View& x;
  const View& y;
  int64_t diagonal;
  bool upper;
};
BINADE_KERNEL(triangle, Triangle, y)

}  // namespace binade::kernels
