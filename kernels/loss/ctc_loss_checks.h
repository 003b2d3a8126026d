// Argument checks of ctc_loss, the same on every device. Lengths and labels are data, not
// arguments.
#pragma once
#include <binade/kernels/loss/ctc_loss.h>

namespace binade::kernels {

void check_arguments(const CtcLossForward& a);
void check_arguments(const CtcLossBackward& a);

}  // namespace binade::kernels
