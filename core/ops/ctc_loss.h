// Connectionist temporal classification. Computed in f32 (f64 for f64) from logits of any floating
// dtype; the result has that dtype. Lengths and classes that do not fit are errors on the CPU; on a
// GPU they give NaN, since the host does not wait to check them.
#pragma once
#include <binade/core/ops/pointwise_loss.h>

namespace binade {

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
