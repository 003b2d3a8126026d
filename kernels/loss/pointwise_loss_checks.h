// Checks of the arguments of pointwise losses that every backend makes.
#pragma once
#include <binade/kernels/loss/pointwise_loss.h>

namespace binade::kernels {

void check_arguments(const PointwiseLossForward& a);
void check_arguments(const PointwiseLossBackward& a);

}  // namespace binade::kernels
