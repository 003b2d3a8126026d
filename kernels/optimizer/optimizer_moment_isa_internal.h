// The range kernel of NAdam and RAdam: elements [0, count) of flat arrays.
#pragma once
#include <binade/kernels/optimizer/optimizer_isa_internal.h>

namespace binade::kernels {

struct MomentRange {
  StepRange range;
  void* exp_avg;     // C
  void* exp_avg_sq;  // C
  double beta1, beta2, eps, grad_scale;
  double coupled_decay, shrink;
  double gradient, average, root;
  bool adaptive;
};

BINADE_ISA_KERNEL(moment_range, const MomentRange& a)

}  // namespace binade::kernels
