// Negative log-likelihood of given log-probabilities. log_probs: [n, classes, inner], any strides
// and any floating dtype. target: i64 [n, inner]. weight: [classes] or kNoView. row_loss,
// row_weight, row_scale: [n, inner]. weight and the row arrays are contiguous and have the compute
// dtype of log_probs. A target equal to ignore_index has loss, weight and gradient 0; any other one
// outside [0, classes) is an error that names it on the CPU and NaN on a GPU.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// row_loss = -w_t log_probs_t, row_weight = w_t (1 without weights).
struct NllLossForward {
  const View& log_probs;
  const View& target;
  const View& weight;
  const View& row_loss;
  const View& row_weight;
  int64_t ignore_index = -100;
};
BINADE_KERNEL(nll_loss_forward, NllLossForward, log_probs)

// dlog_probs = -w_t row_scale at the target, 0 elsewhere; row_scale is the gradient of row_loss.
struct NllLossBackward {
  const View& target;
  const View& weight;
  const View& row_scale;
  const View& dlog_probs;
  int64_t ignore_index = -100;
};
BINADE_KERNEL(nll_loss_backward, NllLossBackward, dlog_probs)

}  // namespace binade::kernels
