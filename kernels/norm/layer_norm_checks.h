// Argument checks of layer norm, the same on every device.
#pragma once
#include <binade/kernels/norm/layer_norm.h>

namespace binade::kernels {

void check_arguments(const LayerNormForward& a);
void check_arguments(const LayerNormBackward& a);

}  // namespace binade::kernels
