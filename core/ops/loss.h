// Losses. Computed in f32 (f64 for f64) from inputs of any floating dtype, in one pass each way;
// results have that dtype. Classes and lengths that do not fit are errors on the CPU and give NaN
// on a GPU, where nobody waits to look.
#pragma once
#include <binade/core/autograd/autograd.h>

#include <string_view>

namespace binade {

// batch_mean: the sum divided by the first size of the input, which is what makes kl_div a
// divergence per sample.
enum class Reduction : uint8_t { none, mean, sum, batch_mean };
// From "none", "mean", "sum" or "batchmean".
Reduction parse_reduction(std::string_view name);

struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  Tensor weight = {};  // [C], one factor per class
};
// logits [N, C, ...]; target i64 classes [N, ...], or probabilities of the shape of logits. The
// mean divides by the sum of the weights of the targets that are not ignored; with probabilities by
// the number of positions.
Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     const CrossEntropyOptions& options = {});

struct NllLossOptions {
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;
  Tensor weight = {};  // [C]
};
// cross_entropy of log-probabilities: -weight[t] log_probs[n, t, ...], log_probs [N, C, ...],
// target i64 [N, ...].
Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const NllLossOptions& options = {});

// Element by element; input and target broadcast but for bce and bce_with_logits. Both get
// gradients.
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
// d^2 / (2 beta) where |d| < beta, else |d| - beta / 2; beta 0 is l1_loss.
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, double beta = 1,
                      Reduction reduction = Reduction::mean);
// d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2).
Tensor huber_loss(const Tensor& input, const Tensor& target, double delta = 1,
                  Reduction reduction = Reduction::mean);

struct BceOptions {
  Reduction reduction = Reduction::mean;
  Tensor weight = {};      // broadcasts to the input
  Tensor pos_weight = {};  // of bce_with_logits: factor of the positive part; broadcasts too
};
// -(t log x + (1 - t) log(1 - x)) of probabilities x; each logarithm is at least -100.
Tensor bce(const Tensor& input, const Tensor& target, const BceOptions& options = {});
// The same of x = sigmoid(logits), without loss of digits.
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BceOptions& options = {});

struct KlDivOptions {
  Reduction reduction = Reduction::mean;
  bool log_target = false;
};
// target (log target - input) of log-probabilities `input`, 0 where target is 0; with log_target
// exp(target) (target - input).
Tensor kl_div(const Tensor& input, const Tensor& target, const KlDivOptions& options = {});

// x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim`; x1 and x2 broadcast.
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int dim = 1, double eps = 1e-8);

struct CtcLossOptions {
  int64_t blank = 0;
  Reduction reduction = Reduction::mean;
  bool zero_infinity = false;  // losses of targets that do not fit count as 0
};
// Connectionist temporal classification (Graves et al., 2006). logits [T, N, C] (log-probabilities
// serve as well); targets i64 [N, S] padded, or [sum of target_lengths] one after the other, which
// reads the lengths on the host; input_lengths, target_lengths i64 [N]. The mean divides each loss
// by its target's length first.
Tensor ctc_loss(const Tensor& logits, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcLossOptions& options = {});

}  // namespace binade
