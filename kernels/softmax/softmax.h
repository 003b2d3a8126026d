// Softmax and log-softmax over one dimension of a tensor with any strides and any floating dtype.
// Arithmetic in the compute dtype. The maximum is subtracted first, so large inputs give finite
// results; a row of minus infinities gives NaN.
#pragma once
#include <binade/kernels/base/provided_kernel.h>

namespace binade::kernels {

// y_i = exp(x_i) / sum_j exp(x_j) along `dim` (0 to rank - 1; 0 for a scalar); with `log` its
// logarithm. y has x's sizes and dtype and may be x.
struct SoftmaxForward {
  const View& x;
  const View& y;
  int dim;
  bool log = false;
};
BINADE_PROVIDED_KERNEL(softmax_forward, SoftmaxForward, y)

// dx = y (dy - sum_j dy_j y_j); with `log` dx = dy - exp(y) sum_j dy_j. dx may be dy.
struct SoftmaxBackward {
  const View& y;
  const View& dy;
  const View& dx;
  int dim;
  bool log = false;
};
BINADE_PROVIDED_KERNEL(softmax_backward, SoftmaxBackward, dx)

}  // namespace binade::kernels
