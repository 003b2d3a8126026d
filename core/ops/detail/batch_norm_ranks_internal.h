// Synchronised batch norm, for batch_norm() in core/ops/batch_norm.h: the batch is spread over
// ranks.
#pragma once
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>

namespace binade {

// What batch_norm() has checked; w and b are in the compute dtype.
struct BatchNormInputs {
  const Op& op;
  const Tensor &x, &w, &b, &running_mean, &running_var;
  const BatchNormOptions& options;
};
// In training, where options.group has several ranks.
Tensor batch_norm_of_ranks(const BatchNormInputs& in);

// Moves the running statistics to those of a batch with `count` elements per channel. variance is
// biased.
void update_running_statistics(const BatchNormInputs& in, const Tensor& mean,
                               const Tensor& variance, int64_t count);

}  // namespace binade
