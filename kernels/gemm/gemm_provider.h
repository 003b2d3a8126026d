// The provider of gemm (kernels/base/provider.h). BINADE_GEMM gives it until set_gemm_provider is
// called. The CPU has two implementations: eigen, and its own for all other names.
//
//   own:naive      one thread per element
//   own:tiled      32 x 32 tiles in shared memory
//   eigen          Eigen's products on the CPU, if this build has Eigen; epilogues that write a
//                  slope or multiply by a factor, and GPUs, run as own
//   library        cuBLASLt, loaded by the first product on a GPU; an error if it is not found.
//                  Products that it cannot compute (strides in both dimensions) run as own
#pragma once
#include <binade/kernels/base/provider.h>

namespace binade::kernels {

// Throws Error, which lists the valid names, for any other name.
inline void set_gemm_provider(std::string_view name) { set_provider(ProviderFamily::gemm, name); }
inline std::string_view gemm_provider() { return provider(ProviderFamily::gemm).name; }
// The variant that the provider's name selects.
inline KernelVariant gemm_variant() { return provider(ProviderFamily::gemm).variant; }

}  // namespace binade::kernels
