// Losses that compare element by element. Computed in f32 (f64 for f64) from inputs of any floating
// dtype, in one pass each way; results have that dtype.
#pragma once
#include <binade/core/autograd/autograd.h>

#include <string_view>

namespace binade {

// batch_mean: the sum divided by the first size of the input; with it kl_div is the divergence per
// sample.
enum class Reduction : uint8_t { none, mean, sum, batch_mean };
// From "none", "mean", "sum" or "batchmean".
Reduction parse_reduction(std::string_view name);

// These compare element by element. Input and target broadcast, except for bce and bce_with_logits;
// the first time the result has more elements than either, a warning names the shapes.
// Both get gradients.
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
// d^2 / (2 beta) where |d| < beta, else |d| - beta / 2; beta 0 is l1_loss.
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, double beta = 1,
                      Reduction reduction = Reduction::mean);
// d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2).
Tensor huber_loss(const Tensor& input, const Tensor& target, double delta = 1,
                  Reduction reduction = Reduction::mean);

struct BCELossOptions {
  Reduction reduction = Reduction::mean;
  Tensor weight = {};      // broadcasts to the input
  Tensor pos_weight = {};  // of bce_with_logits: factor of the positive part; broadcasts too
};
// -(t log x + (1 - t) log(1 - x)) for probabilities x; each logarithm is at least -100.
Tensor bce(const Tensor& input, const Tensor& target, const BCELossOptions& options = {});
// The same for x = sigmoid(logits), without loss of digits.
Tensor bce_with_logits(const Tensor& logits, const Tensor& target,
                       const BCELossOptions& options = {});

struct KLDivLossOptions {
  Reduction reduction = Reduction::mean;
  bool log_target = false;
};
// target (log target - input) for log-probabilities `input`, 0 where target is 0; with log_target
// it is exp(target) (target - input).
Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivLossOptions& options = {});

}  // namespace binade
