// Which implementation of conv2d runs (kernels/base/provider.h). BINADE_CONV2D gives it until
// set_conv2d_provider is called. A device that lacks the variant runs `own`; on the CPU `own` also
// depends on the mode (kernels/base/math_mode.h).
//
//   own:direct     on the CPU sums over padded images, on GPUs one thread per output element
//   own:winograd   on the CPU, where it can compute the call (winograd_internal.h), else direct
//   own:simt ...   on GPUs implicit GEMM; direct, if tiles cannot index the call
//   library        on GPUs cuDNN 9, loaded by the first convolution: an error if it is not found;
//                  what it has no plan for (kernels/cudnn/cudnn_graph_internal.h) runs as own
#pragma once
#include <binade/kernels/base/provider.h>

namespace binade::kernels {

// Throws Error, which lists the valid names, for any other name.
inline void set_conv2d_provider(std::string_view name) {
  set_provider(ProviderFamily::conv2d, name);
}
inline std::string_view conv2d_provider() { return provider(ProviderFamily::conv2d).name; }
// What the provider's name means.
inline KernelVariant conv2d_variant() { return provider(ProviderFamily::conv2d).variant; }

}  // namespace binade::kernels
