// Argument checks of nll_loss, the same on every device. Targets are data, not arguments.
#pragma once
#include <binade/kernels/loss/nll_loss.h>

namespace binade::kernels {

void check_arguments(const NllLossForward& a);
void check_arguments(const NllLossBackward& a);

}  // namespace binade::kernels
