// Argument checks of masked_select, the same on every device.
#pragma once
#include <binade/kernels/index/masked_select.h>

namespace binade::kernels {

void check_arguments(const MaskCount& a);
void check_arguments(const MaskedSelect& a);
void check_arguments(const MaskedSpread& a);

}  // namespace binade::kernels
