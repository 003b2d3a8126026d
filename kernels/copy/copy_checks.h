// Checks of the arguments of copies that every backend makes.
#pragma once
#include <binade/kernels/copy/copy.h>

namespace binade::kernels {

void check_arguments(const AddInto& a);

}  // namespace binade::kernels
