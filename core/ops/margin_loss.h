// Losses made of other ops: by distances, by margins, and likelihoods of a distribution. Computed
// in f32 (f64 for f64) from inputs of any floating dtype; results have that dtype. The targets 1
// and -1 may have any dtype; only margin_ranking_loss has a gradient for them, if they are
// floating. All other inputs have gradients. Reductions are none, mean and sum.
#pragma once
#include <binade/core/ops/pointwise_loss.h>

namespace binade {

struct TripletMarginLossOptions {
  Reduction reduction = Reduction::mean;
  double margin = 1;
  double p = 2;  // of the distances
  double eps = 1e-6;
  bool swap = false;  // the nearer of anchor and positive counts as the distance to the negative
};
// max(d(anchor, positive) - d(anchor, negative) + margin, 0) with pairwise_distance d, of vectors
// [N, D] or [D].
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& options = {});

// 1 - cos(x1, x2) where target is 1, max(cos(x1, x2) - margin, 0) where it is -1: x1 and x2 [N, D]
// or [D], target [N] or a scalar. As in PyTorch 1e-12 is added to the squares of both norms.
Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target,
                             double margin = 0, Reduction reduction = Reduction::mean);

// max(-target (x1 - x2) + margin, 0): target 1 ranks x1 higher, -1 ranks x2 higher. Shapes
// broadcast.
Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target,
                           double margin = 0, Reduction reduction = Reduction::mean);

// x where target is 1, max(margin - x, 0) where it is -1. Shapes broadcast.
Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin = 1,
                            Reduction reduction = Reduction::mean);

struct GaussianNLLLossOptions {
  Reduction reduction = Reduction::mean;
  bool full = false;  // with the constant log(2 pi) / 2
  double eps = 1e-6;  // the least variance; smaller ones get the gradient of eps
};
// (log var + (x - target)^2 / var) / 2. var has x's sizes, or without the last one or with 1 there.
// A negative variance is an error on the CPU and NaN on a device.
Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var,
                         const GaussianNLLLossOptions& options = {});

struct PoissonNLLLossOptions {
  Reduction reduction = Reduction::mean;
  bool log_input = true;  // x is the logarithm of the rate
  bool full = false;      // with Stirling's formula for log target!, where target > 1
  double eps = 1e-8;      // added to a rate x before its logarithm
};
// exp(x) - target x, or x - target log(x + eps) without log_input. Shapes broadcast.
Tensor poisson_nll_loss(const Tensor& x, const Tensor& target,
                        const PoissonNLLLossOptions& options = {});

}  // namespace binade
