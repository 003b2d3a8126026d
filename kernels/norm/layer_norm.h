// Layer normalisation of the rows of a matrix: y = (x - mean) * rstd * weight + bias, with one mean
// and rstd = 1 / sqrt(biased variance + eps) per row. If mean is kNoView: root mean square
// normalisation, which uses 0 for the mean, rstd = 1 / sqrt(mean(x^2) + eps), and no bias. x, y,
// dy, dx: [rows, cols], any strides and any floating dtype; callers view a tensor normalised over
// its last dimensions as such a matrix. weight, bias, dweight and dbias: [cols]; mean and rstd:
// [rows]; contiguous, in the compute dtype of x. Rows of finite elements whose squares or sums
// exceed the compute dtype are computed with a scale, where PyTorch's rstd becomes 0 and y with it,
// as long as no element less the mean exceeds it; rows with an infinity or NaN give what the
// formulas give. Sums over rows are taken over chunks of fixed size, then in double, so results are
// the same for any number of threads.
#pragma once
#include <binade/kernels/base/provided_kernel.h>

namespace binade::kernels {

// The scale of rows whose squares exceed C: it brings squares of up to 2^40 elements into its
// range.
template <class C>
inline constexpr C kHugeRowScale = sizeof(C) == 8 ? C(0x1p-700) : C(0x1p-100);

// Writes y, mean and rstd. weight and bias may each be kNoView (1 and 0). y may be x.
struct LayerNormForward {
  const View& x;
  const View& weight;
  const View& bias;
  const View& y;
  const View& mean;
  const View& rstd;
  double eps;
};
BINADE_PROVIDED_KERNEL(layer_norm_forward, LayerNormForward, y)

// With u = (x - mean) * rstd and g = dy * weight; sums for dx are over a row, the others over rows:
//   dx = rstd (g - sum(g) / cols - u sum(g u) / cols), dweight = sum dy u, dbias = sum dy.
// Without a mean the term sum(g) is absent. dx, dweight and dbias may each be kNoView if not
// wanted. dx may be dy.
struct LayerNormBackward {
  const View& x;
  const View& dy;
  const View& weight;
  const View& mean;
  const View& rstd;
  const View& dx;
  const View& dweight;
  const View& dbias;
};
BINADE_PROVIDED_KERNEL(layer_norm_backward, LayerNormBackward, x)

}  // namespace binade::kernels
