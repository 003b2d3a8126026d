// Which implementation of conv2d runs (kernels/base/provider.h), from BINADE_CONV2D until set. A
// variant that a device does not have is own there; own on the CPU also follows from the mode
// (kernels/base/math_mode.h).
//
//   own:direct     on the CPU sums over padded images, on GPUs one thread per output element
//   own:winograd   on the CPU, where it can compute the call (winograd_internal.h), else direct
//   own:simt ...   on GPUs implicit GEMM; tiles that cannot index a call leave it to direct
//   library        cuDNN: an error, this build has none
#pragma once
#include <binade/kernels/base/provider.h>

namespace binade::kernels {

// Throws Error, with the valid names, for any other.
void set_conv2d_provider(std::string_view name);
std::string_view conv2d_provider();
KernelVariant conv2d_variant();  // what the provider's name means

}  // namespace binade::kernels
