// Argument checks of kernels/optimizer/optimizer_adaptive.h, and the numbers of a step that come as
// arguments; for every device.
#pragma once
#include <binade/kernels/optimizer/optimizer_adaptive.h>
#include <binade/kernels/optimizer/step_rule.h>

namespace binade::kernels {

void check_rmsprop_step(const RmspropStep& a);
void check_adagrad_step(const AdagradStep& a);

// Of a step without words.
StretchWords words_of(const RmspropStep& a);
StretchWords words_of(const AdagradStep& a);

// The rate of Adagrad in this update.
BINADE_HD inline double adagrad_rate(const StretchWords& w, double lr_decay) {
  return w.lr / (1 + (w.update - 1) * lr_decay);
}

}  // namespace binade::kernels
