// Batch normalisation. Statistics, weight and bias are f32 (f64 for f64 x) whatever x is; narrower
// ones are converted first.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

class RankGroup;

struct BatchNormOptions {
  bool training = true;
  double momentum = 0.1;
  double eps = 1e-5;
  // In training the batch is that of all ranks together, of whatever sizes; forward and backward
  // are collective. Null: this rank's. It outlives the graph.
  RankGroup* group = nullptr;
  // In the same pass: relu(y + residual). residual is like x or undefined.
  Tensor residual = {};
  bool relu = false;
};
// x [N, C, ...]; weight and bias [C] or undefined. In training normalises by the batch (biased
// variance) and updates running_mean and running_var [C] in place (unbiased variance), if defined;
// else normalises by them.
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormOptions& options = {});

}  // namespace binade
