// Synchronised batch norm, for batch_norm() in core/ops/batch_norm.h: the batch is spread over
// ranks.
#pragma once
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>

namespace binade {

// The checked arguments of batch_norm(). options.group has several ranks; w and b are in the
// compute dtype.
struct BatchNormOfRanks {
  const Op& op;
  const Tensor &x, &w, &b, &running_mean, &running_var;
  const BatchNormOptions& options;
};
// The forward pass in training.
Tensor batch_norm_of_ranks(const BatchNormOfRanks& a);

}  // namespace binade
