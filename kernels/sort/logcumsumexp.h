// Logarithms of cumulative sums of exponentials along one dimension.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// y_i = log(exp(x_0) + ... + exp(x_i)) along `dim` (0 <= dim < rank), without overflow. Floating; y
// has x's sizes and dtype, any strides, and may be x. f16 and bf16 are summed in f32, f32 in f64,
// in the order of the line, and rounded once per element.
struct LogCumulativeSum {
  const View& x;
  const View& y;
  int dim;
};
BINADE_KERNEL(logcumsumexp_forward, LogCumulativeSum, y)

// dx_i = sum over k >= i of dy_k exp(x_i - y_k), where exp counts as 1 for equal infinities. One
// floating dtype, equal sizes, any strides; dx must not overlap x and dy.
struct LogCumulativeSumBackward {
  const View& x;
  const View& dy;
  const View& dx;
  int dim;
};
BINADE_KERNEL(logcumsumexp_backward, LogCumulativeSumBackward, dx)

}  // namespace binade::kernels
