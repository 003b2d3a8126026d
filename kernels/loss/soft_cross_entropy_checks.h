// Argument checks of cross entropy with probabilities, the same on every device.
#pragma once
#include <binade/kernels/loss/soft_cross_entropy.h>

namespace binade::kernels {

void check_arguments(const SoftCrossEntropyForward& a);
void check_arguments(const SoftCrossEntropyBackward& a);

}  // namespace binade::kernels
