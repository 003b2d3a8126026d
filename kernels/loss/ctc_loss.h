// Connectionist temporal classification (Graves et al., 2006), in log space. For one sample with
// labels l the states are blank, l_1, blank, l_2, .., blank: L = 2 |l| + 1 of them; alpha_t(s) is
// the log-probability of all paths that are in state s at time t and explain what is before it.
//
// log_probs: contiguous [T, N, C] in f32 or f64, which is the stat dtype of everything but dlogits.
// targets: i64 [N, S], of which the first target_lengths[n] count and none is blank. input_lengths,
// target_lengths: i64 [N]. A loss that no path explains is infinite; zero_infinity makes it and its
// gradient 0. With `mean` loss n is divided by N max(target_lengths[n], 1). Lengths or labels out
// of range are IndexErrors (kernels/base/fault.h); where a device goes on, their losses are NaN.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// What both directions read.
struct CtcSequences {
  const View& log_probs;
  const View& targets;
  const View& input_lengths;
  const View& target_lengths;
  int64_t blank;
  bool mean;
  bool zero_infinity;
};

// alpha: contiguous [N, T, 2 S + 1], of which what a sample does not use is not written. nll: [N],
// the loss before mean and zero_infinity. loss: [N].
struct CtcLossForward {
  CtcSequences sequences;
  const View& alpha;
  const View& nll;
  const View& loss;
};
BINADE_KERNEL(ctc_loss_forward, CtcLossForward, loss)

// dlogits [T, N, C], any strides and floating dtype whose compute type is the stat dtype: the
// gradient with respect to logits whose log-softmax log_probs is. dy: [N], the gradient of loss.
struct CtcLossBackward {
  CtcSequences sequences;
  const View& alpha;
  const View& nll;
  const View& dy;
  const View& dlogits;
};
BINADE_KERNEL(ctc_loss_backward, CtcLossBackward, dlogits)

}  // namespace binade::kernels
