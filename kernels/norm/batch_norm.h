// Batch normalisation: y = (x - mean) * rstd * weight + bias, with one mean and rstd per channel.
// The same pass may add a residual like x and apply relu to the sum. x, y, dy, dx, residual: [N, C,
// ...] of any rank >= 2, any strides and any floating dtype; the fast paths are channels-last and
// row-major. Per-channel vectors [C] are contiguous and have the compute dtype of x: f64 for f64
// and f32 for the others. Statistics are sums of differences from a value near the mean, in double,
// over chunks of fixed size.
#pragma once
#include <binade/kernels/base/provided_kernel.h>

namespace binade::kernels {

// Training: writes mean and rstd = 1 / sqrt(biased variance + eps) of the batch, y, and if
// defined the biased variance itself (rstd keeps no digits of it below eps) and mean_rest, the part
// of the mean that its rounding to the compute dtype removed.
// weight and bias may be kNoView (1 and 0).
struct BatchNormForward {
  const View& x;
  const View& weight;
  const View& bias;
  const View& y;
  const View& mean;
  const View& rstd;
  double eps;
  const View& residual = kNoView;
  bool relu = false;
  const View& variance = kNoView;
  const View& mean_rest = kNoView;
};
BINADE_PROVIDED_KERNEL(batch_norm_forward, BatchNormForward, y)

// Evaluation: normalises with the running statistics.
struct BatchNormInference {
  const View& x;
  const View& weight;
  const View& bias;
  const View& running_mean;
  const View& running_var;
  const View& y;
  double eps;
  const View& residual = kNoView;
  bool relu = false;
};
BINADE_KERNEL(batch_norm_inference, BatchNormInference, y)

// Training: with u = (x - mean) * rstd and m elements per channel,
//   dbias = sum dy, dweight = sum dy u, dx = weight rstd (dy - dbias / m - u dweight / m).
// dx, dweight and dbias may each be kNoView if not wanted. dx may be dy. After relu, `y` is its
// output, and the gradient before relu is dy where y > 0 (or NaN), else 0. This is dresidual, which
// may be kNoView, or dy, but not dx. Without relu dresidual would equal dy and must be kNoView.
struct BatchNormBackward {
  const View& x;
  const View& dy;
  const View& weight;
  const View& mean;
  const View& rstd;
  const View& dx;
  const View& dweight;
  const View& dbias;
  const View& y = kNoView;
  const View& dresidual = kNoView;
};
BINADE_PROVIDED_KERNEL(batch_norm_backward, BatchNormBackward, x)

// Evaluation with gradients: the statistics are constants, so dx = dy weight rstd.
struct BatchNormInferenceBackward {
  const View& x;
  const View& dy;
  const View& weight;
  const View& running_mean;
  const View& running_var;
  const View& dx;
  const View& dweight;
  const View& dbias;
  double eps;
};
BINADE_KERNEL(batch_norm_inference_backward, BatchNormInferenceBackward, x)

// running = (1 - momentum) running + momentum batch, with the unbiased batch variance: `count` is
// the number of elements per channel, and must be at least 2. mean and the biased variance come
// from the forward.
struct BatchNormRunning {
  const View& mean;
  const View& variance;
  const View& running_mean;
  const View& running_var;
  double momentum;
  int64_t count;
};
BINADE_KERNEL(batch_norm_running, BatchNormRunning, running_mean)

}  // namespace binade::kernels
