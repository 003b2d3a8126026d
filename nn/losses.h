// Losses: f32 results whatever the precision of their inputs (f64 for f64).
#pragma once
#include <binade/core/ops.h>

namespace binade::nn {

// logits [N, C, ...], target i64 [N, ...]; see core/ops.h.
using binade::cross_entropy;
using binade::CrossEntropyOptions;
using binade::Reduction;

// (input - target)^2, reduced. Sizes must be equal.
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);

// Share of rows of logits [N, C] whose largest entry is at target i64 [N], in [0, 1].
double accuracy(const Tensor& logits, const Tensor& target);

}  // namespace binade::nn
