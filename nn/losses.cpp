#include <binade/nn/losses.h>

namespace binade::nn {

Tensor MSELoss::operator()(const Tensor& input, const Tensor& target) const {
  return mse_loss(input, target, reduction_);
}

Tensor L1Loss::operator()(const Tensor& input, const Tensor& target) const {
  return l1_loss(input, target, reduction_);
}

SmoothL1Loss::SmoothL1Loss(const SmoothL1LossOptions& options) : options_(options) {
  check(options.beta >= 0, "SmoothL1Loss: got beta ", options.beta, ", expected 0 or more");
}

Tensor SmoothL1Loss::operator()(const Tensor& input, const Tensor& target) const {
  return smooth_l1_loss(input, target, options_.beta, options_.reduction);
}

HuberLoss::HuberLoss(const HuberLossOptions& options) : options_(options) {
  check(options.delta > 0, "HuberLoss: got delta ", options.delta, ", expected more than 0");
}

Tensor HuberLoss::operator()(const Tensor& input, const Tensor& target) const {
  return huber_loss(input, target, options_.delta, options_.reduction);
}

Tensor BCELoss::operator()(const Tensor& input, const Tensor& target) const {
  return bce(input, target, options_);
}

Tensor BCEWithLogitsLoss::operator()(const Tensor& logits, const Tensor& target) const {
  return bce_with_logits(logits, target, options_);
}

Tensor KLDivLoss::operator()(const Tensor& input, const Tensor& target) const {
  return kl_div(input, target, options_);
}

Tensor NLLLoss::operator()(const Tensor& log_probs, const Tensor& target) const {
  return nll_loss(log_probs, target, options_);
}

Tensor CrossEntropyLoss::operator()(const Tensor& logits, const Tensor& target) const {
  return cross_entropy(logits, target, options_);
}

Tensor CTCLoss::operator()(const Tensor& log_probs, const Tensor& targets,
                           const Tensor& input_lengths, const Tensor& target_lengths) const {
  return ctc_loss(log_probs, targets, input_lengths, target_lengths, options_);
}

TripletMarginLoss::TripletMarginLoss(const TripletMarginLossOptions& options) : options_(options) {
  check(options.margin > 0, "TripletMarginLoss: got margin ", options.margin,
        ", expected more than 0");
}

Tensor TripletMarginLoss::operator()(const Tensor& anchor, const Tensor& positive,
                                     const Tensor& negative) const {
  return triplet_margin_loss(anchor, positive, negative, options_);
}

Tensor CosineEmbeddingLoss::operator()(const Tensor& x1, const Tensor& x2,
                                       const Tensor& target) const {
  return cosine_embedding_loss(x1, x2, target, options_.margin, options_.reduction);
}

Tensor MarginRankingLoss::operator()(const Tensor& x1, const Tensor& x2,
                                     const Tensor& target) const {
  return margin_ranking_loss(x1, x2, target, options_.margin, options_.reduction);
}

Tensor HingeEmbeddingLoss::operator()(const Tensor& x, const Tensor& target) const {
  return hinge_embedding_loss(x, target, options_.margin, options_.reduction);
}

Tensor GaussianNLLLoss::operator()(const Tensor& x, const Tensor& target, const Tensor& var) const {
  return gaussian_nll_loss(x, target, var, options_);
}

Tensor PoissonNLLLoss::operator()(const Tensor& x, const Tensor& target) const {
  return poisson_nll_loss(x, target, options_);
}

Tensor CosineSimilarity::operator()(const Tensor& x1, const Tensor& x2) const {
  return cosine_similarity(x1, x2, options_.dim, options_.eps);
}

double accuracy(const Tensor& logits, const Tensor& target) {
  check(logits.defined() && target.defined(), "accuracy: got an undefined tensor, expected two");
  check(logits.dim() == 2 && target.dim() == 1 && target.size(0) == logits.size(0) &&
            target.dtype() == DType::i64,
        "accuracy: got logits ", logits.sizes(), " and a target ", target.dtype(), " ",
        target.sizes(), ", expected [N, C] and i64 [N]; convert labels with to(DType::i64)");
  check(logits.size(1) != 1, "accuracy: got logits ", logits.sizes(),
        ", expected at least two classes; compare one score with a threshold: "
        "train::Accuracy({.threshold = 0})");
  const NoGradGuard guard;
  const Tensor guess = argmax(logits.detach(), 1).to(Device{}), expected = target.to(Device{});
  int64_t right = 0;
  for (int64_t i = 0; i < guess.numel(); ++i) {
    right += guess.at(i) == expected.at(i);
  }
  return static_cast<double>(right) / static_cast<double>(guess.numel());  // NaN of no rows
}

}  // namespace binade::nn
