// Connectionist temporal classification (Graves et al., 2006), in log space. For one sample with
// labels l the states are blank, l_1, blank, l_2, .., blank: L = 2 |l| + 1 of them. alpha_t(s) is
// the log-probability of all paths that are in state s at time t and emit the labels before it.
//
// log_probs: contiguous [T, N, C] in f32 or f64; everything but dlogits has this dtype. targets:
// i64 [N, S]; the first target_lengths[n] count and none of them is blank. input_lengths,
// target_lengths: i64 [N]. If no path emits the labels, the loss is infinite; zero_infinity sets it
// and its gradient to 0. With `mean`, loss n is divided by N max(target_lengths[n], 1). Lengths or
// labels out of range are IndexErrors (kernels/base/fault.h); on a device the loss of such a sample
// is NaN.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// The inputs of both directions.
struct CtcSequences {
  const View& log_probs;
  const View& targets;
  const View& input_lengths;
  const View& target_lengths;
  int64_t blank;
  bool mean;
  bool zero_infinity;
};

// alpha: contiguous [N, T, 2 S + 1]; the part beyond a sample's times and states is not written.
// nll: [N], the loss before mean and zero_infinity. loss: [N].
struct CtcLossForward {
  CtcSequences sequences;
  const View& alpha;
  const View& nll;
  const View& loss;
};
BINADE_KERNEL(ctc_loss_forward, CtcLossForward, loss)

// dlogits [T, N, C]: the gradient with respect to the logits whose log-softmax is log_probs. Any
// strides, any floating dtype whose compute dtype is that of log_probs. dy: [N], the gradient of
// loss.
struct CtcLossBackward {
  CtcSequences sequences;
  const View& alpha;
  const View& nll;
  const View& dy;
  const View& dlogits;
};
BINADE_KERNEL(ctc_loss_backward, CtcLossBackward, dlogits)

}  // namespace binade::kernels
