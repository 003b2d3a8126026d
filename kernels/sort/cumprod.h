// Cumulative products along one dimension.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// y_i = x_0 ... x_i along `dim` (0 <= dim < rank). y has x's sizes and dtype, any strides, and may
// be x. Floating, i64 and i32 (wrapping); f16 and bf16 are multiplied in f32, f32 in f64, in the
// order of the line, and rounded once per element.
struct CumulativeProduct {
  const View& x;
  const View& y;
  int dim;
};
BINADE_KERNEL(cumprod_forward, CumulativeProduct, y)

// dx_k = sum over i >= k of dy_i times the product of the other x_j, j <= i: exact for any number
// of zeros, as no quotient is taken; NaN where x_k is. One floating dtype, equal sizes, any
// strides; dx must not be x.
struct CumulativeProductBackward {
  const View& x;
  const View& dy;
  const View& dx;
  int dim;
};
BINADE_KERNEL(cumprod_backward, CumulativeProductBackward, dx)

}  // namespace binade::kernels
