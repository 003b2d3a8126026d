// Argument checks of softmax, the same on every device.
#pragma once
#include <binade/kernels/softmax/softmax.h>

namespace binade::kernels {

void check_arguments(const SoftmaxForward& a);
void check_arguments(const SoftmaxBackward& a);

}  // namespace binade::kernels
