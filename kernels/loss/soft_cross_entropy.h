// Cross entropy of class probabilities, fused with log-softmax: logits and targets are read once in
// the forward and once in the backward, and nothing of their size is stored in between. logits,
// target, dlogits: [rows, classes], any strides, one floating dtype. weight: [classes] or kNoView.
// row_loss, row_scale: [rows]. weight and the row vectors are contiguous and have the compute dtype
// of logits. With s = label_smoothing, C classes and q_c = (1 - s) target_c + s/C the loss of a row
// is sum_c w_c q_c (lse - logits_c).
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

struct SoftCrossEntropyForward {
  const View& logits;
  const View& target;
  const View& weight;
  const View& row_loss;
  double label_smoothing = 0;
};
BINADE_KERNEL(soft_cross_entropy_forward, SoftCrossEntropyForward, logits)

// dlogits_c = row_scale (softmax_c sum_i w_i q_i - w_c q_c).
struct SoftCrossEntropyBackward {
  const View& logits;
  const View& target;
  const View& weight;
  const View& row_scale;
  const View& dlogits;
  double label_smoothing = 0;
};
BINADE_KERNEL(soft_cross_entropy_backward, SoftCrossEntropyBackward, dlogits)

}  // namespace binade::kernels
