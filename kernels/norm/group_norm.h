// Group normalisation: y = (x - mean) * rstd * weight + bias. The channels of an image are split
// into groups of adjacent channels, and each group of each image has one mean and rstd = 1 /
// sqrt(biased variance + eps). One channel per group is instance norm. x, y, dy, dx: [N, C, ...] of
// any rank >= 2, any strides and any floating dtype; the fast paths are channels-last and
// row-major. weight, bias, dweight, dbias: [C]; mean and rstd: [N, groups]; contiguous, in the
// compute dtype of x. Sums are taken over chunks of fixed size, then in double.
#pragma once
#include <binade/kernels/base/provided_kernel.h>

namespace binade::kernels {

// Writes y, mean and rstd. weight and bias may each be kNoView (1 and 0). y may be x.
struct GroupNormForward {
  const View& x;
  const View& weight;
  const View& bias;
  const View& y;
  const View& mean;
  const View& rstd;
  double eps;
};
BINADE_PROVIDED_KERNEL(group_norm_forward, GroupNormForward, y)

// With u = (x - mean) * rstd and g = dy * weight; means are over a group, sums over images and
// pixels:
//   dx = rstd (g - mean(g) - u mean(g u)), dweight = sum dy u, dbias = sum dy.
// dx, dweight and dbias may each be kNoView if not wanted. dx may be dy.
struct GroupNormBackward {
  const View& x;
  const View& dy;
  const View& weight;
  const View& mean;
  const View& rstd;
  const View& dx;
  const View& dweight;
  const View& dbias;
};
BINADE_PROVIDED_KERNEL(group_norm_backward, GroupNormBackward, x)

}  // namespace binade::kernels
