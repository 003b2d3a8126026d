// Cross entropy of class indices, fused with log-softmax: logits are read once in the forward and
// once in the backward, and no probabilities are stored. logits, dlogits: [rows, classes], any
// strides and any floating dtype. target: [rows] i64. weight: [classes] or kNoView. row_loss,
// row_weight, lse, row_scale: [rows]. weight and the row vectors are contiguous and have the
// compute dtype of logits. With s = label_smoothing, C classes and nll_c = lse - logits_c, the loss
// of a row is
//   (1 - s) w_t nll_t + s / C sum_c w_c nll_c.
// A row whose target is ignore_index has loss, weight and gradient 0. Any other target outside
// [0, classes) is an error: the CPU names the row and the value; a device writes NaN into the row's
// loss, weight and gradient, and reports it (kernels/base/fault.h).
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// Writes row_loss, row_weight (w_t, 1 without weights, 0 where ignored) and lse (log-sum-exp).
struct CrossEntropyForward {
  const View& logits;
  const View& target;
  const View& weight;
  const View& row_loss;
  const View& row_weight;
  const View& lse;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
};
BINADE_KERNEL(cross_entropy_forward, CrossEntropyForward, logits)

// dlogits = row_scale * d row_loss / d logits; row_scale is the upstream gradient of each row_loss.
// dlogits may be logits.
struct CrossEntropyBackward {
  const View& logits;
  const View& target;
  const View& weight;
  const View& lse;
  const View& row_scale;
  const View& dlogits;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
};
BINADE_KERNEL(cross_entropy_backward, CrossEntropyBackward, dlogits)

// Forward and backward in one pass over the logits, for losses whose upstream gradient is known
// beforehand. dlogits may be logits.
struct CrossEntropyForwardBackward {
  const View& logits;
  const View& target;
  const View& weight;
  const View& row_scale;
  const View& row_loss;
  const View& row_weight;
  const View& lse;
  const View& dlogits;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
};
BINADE_KERNEL(cross_entropy_forward_backward, CrossEntropyForwardBackward, dlogits)

}  // namespace binade::kernels
