// The device scalars of an RMSprop or Adagrad step, computed from its arguments; for every backend.
#pragma once
#include <binade/kernels/optimizer/optimizer_adaptive.h>
#include <binade/kernels/optimizer/step_rule.h>

namespace binade::kernels {

// For a step whose scalars come as arguments.
RangeScalars step_scalars_of(const RMSpropStep& a);
RangeScalars step_scalars_of(const AdagradStep& a);

// The learning rate of Adagrad for this update.
BINADE_HD inline double adagrad_rate(const RangeScalars& w, double lr_decay) {
  return w.lr / (1 + (w.update - 1) * lr_decay);
}

}  // namespace binade::kernels
