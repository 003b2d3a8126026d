// NAdam and RAdam: steps over flat ranges of the parameter arena, under the conventions of
// kernels/optimizer/optimizer.h.
#pragma once
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/optimizer/low_update.h>

namespace binade::kernels {

enum class MomentRule : uint8_t { nadam, radam };

// g += weight_decay p (decoupled: p *= 1 - lr weight_decay instead); exp_avg and exp_avg_sq as in
// adam_step; p -= (gradient g + average exp_avg) / (root sqrt(exp_avg_sq) + eps), with the numbers
// of the rule for this step (optimizer_moment_internal.h). While the rule is not adaptive, the
// divisor is 1.
struct MomentStep {
  const View& param;
  const View& master;
  const View& grad;
  const View& exp_avg;
  const View& exp_avg_sq;
  MomentRule rule;
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;
  double momentum_decay;  // of nadam
  int64_t step;           // from 1
  double grad_multiplier;
  const View& step_scalars = kNoView;
  const LowUpdate& low = kPlainUpdate;
};
BINADE_KERNEL(moment_step, MomentStep, param)

}  // namespace binade::kernels
