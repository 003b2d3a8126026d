// Checks of the arguments of three-operand kernels that every backend makes.
#pragma once
#include <binade/kernels/base/number_internal.h>
#include <binade/kernels/pointwise/ternary.h>

namespace binade::kernels {

void check_arguments(const WhereForward& a);
void check_arguments(const LerpForward& a);

}  // namespace binade::kernels
