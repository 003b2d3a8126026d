// Checks of the arguments of three-operand kernels that every backend makes.
#pragma once
#include <binade/kernels/number.h>
#include <binade/kernels/ternary.h>

namespace binade::kernels {

void check_arguments(const WhereForward& a);
void check_arguments(const LerpForward& a);

}  // namespace binade::kernels
