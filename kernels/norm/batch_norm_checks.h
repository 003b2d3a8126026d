// Argument checks of batch norm, the same on every device.
#pragma once
#include <binade/kernels/norm/batch_norm.h>

namespace binade::kernels {

void check_arguments(const BatchNormForward& a);
void check_arguments(const BatchNormInference& a);
void check_arguments(const BatchNormBackward& a);
void check_arguments(const BatchNormInferenceBackward& a);
void check_arguments(const BatchNormRunning& a);

}  // namespace binade::kernels
