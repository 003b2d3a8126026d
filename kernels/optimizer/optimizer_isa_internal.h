// Range kernels of the optimizers: elements [0, count) of flat arrays. T is the parameter's type, C
// the type of its compute dtype.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

// The arrays of every step.
struct StepRange {
  DType dtype;
  void* param;       // T
  void* master;      // C or null
  const void* grad;  // T
  int64_t count;
};

struct SGDRange {
  StepRange range;
  void* momentum_buffer;  // C or null
  double lr, momentum, grad_scale, weight_decay, dampening;
  bool nesterov, first_step;
};

struct AdamRange {
  StepRange range;
  void* exp_avg;         // C
  void* exp_avg_sq;      // C
  void* max_exp_avg_sq;  // C or null
  // step_size = lr / (1 - beta1^t); second_scale = 1 / sqrt(1 - beta2^t); g = grad grad_scale +
  // coupled_decay p; p is multiplied by `shrink` first.
  double beta1, beta2, eps, step_size, second_scale, grad_scale, coupled_decay, shrink;
};

struct GradientStatsRange {
  DType dtype;
  const void* grad;
  int64_t count;
  double* result;  // {sum of squares of the finite elements, number of the others}
};

BINADE_ISA_KERNEL(sgd_range, const SGDRange& a)
BINADE_ISA_KERNEL(adam_range, const AdamRange& a)
BINADE_ISA_KERNEL(gradient_stats_range, const GradientStatsRange& a)

}  // namespace binade::kernels
