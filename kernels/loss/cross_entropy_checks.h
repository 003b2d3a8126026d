// Argument checks of cross entropy, the same on every device. Targets are data, not arguments.
#pragma once
#include <binade/kernels/loss/cross_entropy.h>

namespace binade::kernels {

void check_arguments(const CrossEntropyForward& a);
void check_arguments(const CrossEntropyBackward& a);
void check_arguments(const CrossEntropyForwardBackward& a);

}  // namespace binade::kernels
