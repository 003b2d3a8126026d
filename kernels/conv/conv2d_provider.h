// The provider of conv2d (kernels/base/provider.h). BINADE_CONV2D gives it until
// set_conv2d_provider is called. A device that lacks the variant runs `own`; on the CPU `own` also
// depends on the mode (kernels/base/math_mode.h).
//
//   own:direct     on the CPU sums over padded images, on GPUs one thread per output element
//   own:winograd   on the CPU, where it can compute the call (winograd_internal.h), else direct
//   own:simt ...   on GPUs implicit GEMM; direct, if tiles cannot index the call
//   library        on GPUs cuDNN 9, loaded by the first convolution; an error if it is not found.
//                  Calls without a plan (kernels/cudnn/cudnn_graph_internal.h) run as own
#pragma once
#include <binade/kernels/base/provider.h>

namespace binade::kernels {

// Throws Error, which lists the valid names, for any other name.
inline void set_conv2d_provider(std::string_view name) {
  set_provider(ProviderFamily::conv2d, name);
}
inline std::string_view conv2d_provider() { return provider(ProviderFamily::conv2d).name; }
// The variant that the provider's name selects.
inline KernelVariant conv2d_variant() { return provider(ProviderFamily::conv2d).variant; }

}  // namespace binade::kernels
