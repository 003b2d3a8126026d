// Losses: f32 results whatever the precision of their inputs (f64 for f64).
#pragma once
#include <binade/core/ops.h>

namespace binade::nn {

// logits [N, C, ...], target i64 [N, ...].
Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     const CrossEntropyOptions& options = {});

// (input - target)^2, reduced. Sizes must be equal.
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);

// Share of rows of logits [N, C] whose largest entry is at the target, in [0, 1].
double accuracy(const Tensor& logits, const Tensor& target);

}  // namespace binade::nn
