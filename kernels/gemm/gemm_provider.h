// Which implementation of gemm runs on GPUs (kernels/base/provider.h), from BINADE_GEMM until set.
// On the CPU there is one.
//
//   own:naive      one thread per element
//   own:tiled      32 x 32 tiles in shared memory
//   library        cuBLASLt; what it does not do (strides in both dimensions) runs as own
#pragma once
#include <binade/kernels/base/provider.h>

namespace binade::kernels {

// Throws Error, with the valid names, for any other.
void set_gemm_provider(std::string_view name);
std::string_view gemm_provider();
KernelVariant gemm_variant();  // what the provider's name means

}  // namespace binade::kernels
