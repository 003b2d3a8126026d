// Argument checks of interpolate, the same on every device.
#pragma once
#include <binade/kernels/image/interpolate.h>

namespace binade::kernels {

void check_arguments(const InterpolateForward& a);
void check_arguments(const InterpolateBackward& a);

}  // namespace binade::kernels
