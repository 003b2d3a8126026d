// Batch normalisation. Statistics, weight and bias are f32 for every dtype of x (f64 for f64); f16
// and bf16 weights are converted first.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

class RankGroup;

struct BatchNormOptions {
  bool training = true;
  double momentum = 0.1;
  double eps = 1e-5;
  // In training the statistics are taken over the batches of all ranks, which may differ in size;
  // forward and backward are then collective. If null, over the batch of this rank only. REQUIRES:
  // the group outlives the graph.
  RankGroup* group = nullptr;
  // Computes relu(y + residual) in the same pass. residual has the sizes and dtype of x or is
  // undefined.
  Tensor residual = {};
  bool relu = false;
};
// x [N, C, ...]; weight and bias [C] or undefined. In training it normalises by the statistics of
// the batch (biased variance) and updates running_mean and running_var [C] in place (unbiased
// variance), if they are defined. In evaluation it normalises by the running statistics.
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormOptions& options = {});

}  // namespace binade
