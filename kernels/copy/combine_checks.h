// Argument checks of the hops of a reduction, the same on every device.
#pragma once
#include <binade/kernels/copy/combine.h>

namespace binade::kernels {

void check_arguments(const Combine& a);

}  // namespace binade::kernels
