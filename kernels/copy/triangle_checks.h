// Argument checks of triangle, the same on every device.
#pragma once
#include <binade/kernels/copy/triangle.h>

namespace binade::kernels {

void check_arguments(const Triangle& a);

}  // namespace binade::kernels
