// Range kernels of RMSprop and Adagrad: elements [0, count) of flat arrays.
#pragma once
#include <binade/kernels/optimizer/optimizer_isa_internal.h>

namespace binade::kernels {

struct RMSpropRange {
  StepRange range;
  void* square_avg;       // C
  void* grad_avg;         // C or null
  void* momentum_buffer;  // C or null
  double lr, alpha, eps, weight_decay, momentum, grad_scale;
};

struct AdagradRange {
  StepRange range;
  void* sum;  // C
  double rate, eps, weight_decay, grad_scale;
};

BINADE_ISA_KERNEL(rmsprop_range, const RMSpropRange& a)
BINADE_ISA_KERNEL(adagrad_range, const AdagradRange& a)

}  // namespace binade::kernels
