// Cumulative sums along one dimension.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// y_i = x_0 + ... + x_i along `dim` (0 <= dim < rank); with `reverse` x_i + ... + x_last, which is
// its gradient. y has x's sizes and dtype, any strides, and may be x. Floating, i64 and i32
// (wrapping); f16 and bf16 are summed in f32 and rounded once per element.
struct CumulativeSum {
  const View& x;
  const View& y;
  int dim;
  bool reverse = false;
};
BINADE_KERNEL(cumsum, CumulativeSum, y)

}  // namespace binade::kernels
