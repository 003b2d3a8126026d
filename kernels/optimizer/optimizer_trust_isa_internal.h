// Range kernels of LAMB and LARS: elements [0, count) of flat arrays, which belong to one
// parameter.
#pragma once
#include <binade/kernels/optimizer/optimizer_isa_internal.h>

namespace binade::kernels {

struct LAMBRange {
  StepRange range;
  void* exp_avg;     // C
  void* exp_avg_sq;  // C
  // first_scale = 1 / (1 - beta1^t), second_scale = 1 / sqrt(1 - beta2^t).
  double beta1, beta2, eps, first_scale, second_scale, grad_scale, weight_decay;
  double rate = 0;         // lr times the ratio
  double* sums = nullptr;  // squares of p and of the direction
};

struct LARSRange {
  StepRange range;
  void* momentum_buffer;  // C
  double momentum, grad_scale, weight_decay;
  double rate = 0;         // lr times the ratio
  double* sums = nullptr;  // squares of p and of the gradient
};

// The first pass and the last one.
BINADE_ISA_KERNEL(lamb_measure_range, const LAMBRange& a)
BINADE_ISA_KERNEL(lamb_update_range, const LAMBRange& a)
BINADE_ISA_KERNEL(lars_measure_range, const LARSRange& a)
BINADE_ISA_KERNEL(lars_update_range, const LARSRange& a)

}  // namespace binade::kernels
