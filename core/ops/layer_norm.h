// Normalisation over trailing dimensions, or over groups of channels. Statistics, weights and
// biases are f32 for every dtype of x (f64 for f64); f16 and bf16 weights are converted first.
// Variances are biased; eps is added under the root.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <optional>

namespace binade {

// x normalised over its last dimensions, whose sizes are `normalized_shape`: (x - mean) rstd weight
// + bias. weight and bias have these sizes too; an undefined weight is 1, an undefined bias 0.
Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);

// x / sqrt(mean(x^2) + eps) weight over the last dimensions, as in layer_norm. The default eps is
// the machine epsilon of the statistics' dtype.
Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = std::nullopt);

// x [N, C, ...] normalised over each of `num_groups` groups of neighbouring channels of each image;
// weight and bias [C] or undefined.
Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);

// x [N, C, L, ...] normalised over each channel of each image, which must have more than one
// element; weight and bias [C] or undefined.
Tensor instance_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                     double eps = 1e-5);

}  // namespace binade
