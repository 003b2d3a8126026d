// Optimizer steps over flat ranges of the parameter arena, one pass over memory each. All views of
// a step are 1-D, contiguous and of one length. grad has the parameter's dtype. master and the
// optimizer state have its compute dtype.
//   f32, f64 parameters: master is kNoView, param is updated.
//   f16, bf16 with a master: the master is updated and param receives its rounded copy.
//   f16, bf16 without a master: param is updated in float and rounded (precision mode "half"), as
//     `low` says (kernels/optimizer/low_update.h).
// g = grad * grad_multiplier, where the multiplier combines unscaling, clip factor and accumulation
// divisor. Arithmetic is in the compute dtype; values that only depend on the step are computed in
// double. If `step_scalars` (RangeScalars of kernels/optimizer/step_rule.h, in device memory) is
// given, learning rate, momentum (beta1 of Adam etc.), multiplier and number of the update are read
// from there instead of from the arguments, and if its `apply` is 0 the step does nothing.
#pragma once
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/optimizer/low_update.h>

namespace binade::kernels {

// result: f64 [2] = {sum of squares of the finite elements, number of the other elements}.
// Overwrites result. Summed in double over chunks of fixed size.
struct GradientStats {
  const View& grad;
  const View& result;
};
BINADE_KERNEL(gradient_stats, GradientStats, result)

// g += weight_decay p; buffer = momentum buffer + (1 - dampening) g, or g itself if first_step; g =
// nesterov ? g + momentum buffer : buffer; p -= lr g. momentum_buffer may be kNoView if momentum is
// 0, and is not read if first_step.
struct SGDStep {
  const View& param;
  const View& master;
  const View& grad;
  const View& momentum_buffer;
  double lr, momentum, dampening, weight_decay;
  bool nesterov;
  bool first_step;
  double grad_multiplier;
  const View& step_scalars = kNoView;
  const LowUpdate& low = kPlainUpdate;
};
BINADE_KERNEL(sgd_step, SGDStep, param)

// g += weight_decay p (decoupled, AdamW: p *= 1 - lr weight_decay instead);
// exp_avg = beta1 exp_avg + (1 - beta1) g; exp_avg_sq = beta2 exp_avg_sq + (1 - beta2) g^2;
// p -= lr (exp_avg / (1 - beta1^step)) / (sqrt(exp_avg_sq / (1 - beta2^step)) + eps), step from 1.
// With max_exp_avg_sq (AMSGrad) the last line uses the running maximum of exp_avg_sq instead.
struct AdamStep {
  const View& param;
  const View& master;
  const View& grad;
  const View& exp_avg;
  const View& exp_avg_sq;
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;
  int64_t step;
  double grad_multiplier;
  const View& max_exp_avg_sq = kNoView;
  const View& step_scalars = kNoView;
  const LowUpdate& low = kPlainUpdate;
};
BINADE_KERNEL(adam_step, AdamStep, param)

}  // namespace binade::kernels
