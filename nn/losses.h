// Losses as objects that hold their options, under PyTorch's names, and as functions
// (core/ops/loss.h). They have no parameters and no state, so they are not modules but values that
// can be copied. Results are f32 for every floating dtype of the inputs (f64 for f64).
#pragma once
#include <binade/core/ops.h>

namespace binade::nn {

using binade::cross_entropy;
using binade::CrossEntropyLossOptions;
using binade::mse_loss;
using binade::Reduction;

class MSELoss {
 public:
  explicit MSELoss(Reduction reduction = Reduction::mean) : reduction_(reduction) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  Reduction reduction_;
};

class L1Loss {
 public:
  explicit L1Loss(Reduction reduction = Reduction::mean) : reduction_(reduction) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  Reduction reduction_;
};

struct SmoothL1LossOptions {
  Reduction reduction = Reduction::mean;
  double beta = 1;
};

class SmoothL1Loss {
 public:
  explicit SmoothL1Loss(const SmoothL1LossOptions& options = {});
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  SmoothL1LossOptions options_;
};

struct HuberLossOptions {
  Reduction reduction = Reduction::mean;
  double delta = 1;
};

class HuberLoss {
 public:
  explicit HuberLoss(const HuberLossOptions& options = {});
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  HuberLossOptions options_;
};

// The input is probabilities.
class BCELoss {
 public:
  explicit BCELoss(const BCELossOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  BCELossOptions options_;
};

class BCEWithLogitsLoss {
 public:
  explicit BCEWithLogitsLoss(const BCELossOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& logits, const Tensor& target) const;

 private:
  BCELossOptions options_;
};

// The input is log-probabilities; the target is probabilities, or log-probabilities with
// log_target.
class KLDivLoss {
 public:
  explicit KLDivLoss(const KLDivLossOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  KLDivLossOptions options_;
};

// Takes log-probabilities [N, C, ...] and classes [N, ...].
class NLLLoss {
 public:
  explicit NLLLoss(const NLLLossOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& log_probs, const Tensor& target) const;

 private:
  NLLLossOptions options_;
};

// Takes logits [N, C, ...] and classes [N, ...] or probabilities [N, C, ...].
class CrossEntropyLoss {
 public:
  explicit CrossEntropyLoss(const CrossEntropyLossOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& logits, const Tensor& target) const;

 private:
  CrossEntropyLossOptions options_;
};

// Takes log-probabilities or logits [T, N, C]; see ctc_loss.
class CTCLoss {
 public:
  explicit CTCLoss(const CTCLossOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                    const Tensor& target_lengths) const;

 private:
  CTCLossOptions options_;
};

// Takes anchor, positive and negative vectors [N, D] or [D].
class TripletMarginLoss {
 public:
  explicit TripletMarginLoss(const TripletMarginLossOptions& options = {});
  Tensor operator()(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const;

 private:
  TripletMarginLossOptions options_;
};

struct CosineEmbeddingLossOptions {
  Reduction reduction = Reduction::mean;
  double margin = 0;
};

// Takes pairs of vectors [N, D] and targets [N] of 1 and -1.
class CosineEmbeddingLoss {
 public:
  explicit CosineEmbeddingLoss(const CosineEmbeddingLossOptions& options = {})
      : options_(options) {}
  Tensor operator()(const Tensor& x1, const Tensor& x2, const Tensor& target) const;

 private:
  CosineEmbeddingLossOptions options_;
};

struct MarginRankingLossOptions {
  Reduction reduction = Reduction::mean;
  double margin = 0;
};

class MarginRankingLoss {
 public:
  explicit MarginRankingLoss(const MarginRankingLossOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& x1, const Tensor& x2, const Tensor& target) const;

 private:
  MarginRankingLossOptions options_;
};

struct HingeEmbeddingLossOptions {
  Reduction reduction = Reduction::mean;
  double margin = 1;
};

class HingeEmbeddingLoss {
 public:
  explicit HingeEmbeddingLoss(const HingeEmbeddingLossOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& x, const Tensor& target) const;

 private:
  HingeEmbeddingLossOptions options_;
};

// The input is means, with a variance for each.
class GaussianNLLLoss {
 public:
  explicit GaussianNLLLoss(const GaussianNLLLossOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& x, const Tensor& target, const Tensor& var) const;

 private:
  GaussianNLLLossOptions options_;
};

// The input is logarithms of rates, or rates without log_input; the target is counts.
class PoissonNLLLoss {
 public:
  explicit PoissonNLLLoss(const PoissonNLLLossOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& x, const Tensor& target) const;

 private:
  PoissonNLLLossOptions options_;
};

struct CosineSimilarityOptions {
  int dim = 1;
  double eps = 1e-8;
};

class CosineSimilarity {
 public:
  explicit CosineSimilarity(const CosineSimilarityOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& x1, const Tensor& x2) const;

 private:
  CosineSimilarityOptions options_;
};

// The share of rows of logits [N, C] whose largest entry is at target i64 [N], in [0, 1]. NaN for
// N = 0, as the mean of no elements is.
double accuracy(const Tensor& logits, const Tensor& target);

}  // namespace binade::nn
