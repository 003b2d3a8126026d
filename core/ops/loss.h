// Classification losses and CTC. Computed in f32 (f64 for f64) from inputs of any floating dtype,
// in one pass each way; results have that dtype. Classes that are out of range, and lengths that do
// not fit, are errors on the CPU; on a GPU they give NaN, since the host does not wait to check
// them.
#pragma once
#include <binade/core/ops/pointwise_loss.h>

namespace binade {

struct CrossEntropyLossOptions {
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  Tensor weight = {};  // [C], one factor per class
};
// logits [N, C, ...]; target i64 classes [N, ...], or probabilities of the shape of logits. The
// mean divides by the sum of the weights of the targets that are not ignored; for probabilities it
// divides by the number of positions.
Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     const CrossEntropyLossOptions& options = {});

struct NLLLossOptions {
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;
  Tensor weight = {};  // [C]
};
// cross_entropy for log-probabilities: -weight[t] log_probs[n, t, ...], log_probs [N, C, ...],
// target i64 [N, ...].
Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const NLLLossOptions& options = {});

struct CTCLossOptions {
  int64_t blank = 0;
  Reduction reduction = Reduction::mean;
  bool zero_infinity = false;  // losses of targets that do not fit count as 0
};
// Connectionist temporal classification (Graves et al., 2006). logits [T, N, C] (log-probabilities
// serve as well); targets i64 [N, S] padded, or concatenated [sum of target_lengths], for which the
// host reads the lengths; input_lengths, target_lengths i64 [N]. The mean divides each loss by its
// target's length first.
Tensor ctc_loss(const Tensor& logits, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossOptions& options = {});

}  // namespace binade
