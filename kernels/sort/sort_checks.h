// Checks of the arguments of sorts that every backend makes.
#pragma once
#include <binade/kernels/sort/sort.h>

namespace binade::kernels {

void check_arguments(const Sort& a);
void check_arguments(const TopK& a);

}  // namespace binade::kernels
