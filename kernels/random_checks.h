// Checks of the arguments of random kernels that every backend makes.
#pragma once
#include <binade/kernels/random.h>

namespace binade::kernels {

void check_arguments(const FillUniform& a);
void check_arguments(const FillNormal& a);
void check_arguments(const Dropout& a);

}  // namespace binade::kernels
