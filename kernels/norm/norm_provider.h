// The provider of layer norm, RMS norm and batch norm on GPUs (kernels/base/provider.h): own,
// library or auto. BINADE_NORM gives it until set_norm_provider is called. The CPU has only one
// implementation.
//
//   library        cuDNN 9, loaded by the first norm; an error if it is not found. It computes f32,
//                  f16 and bf16 with all parameters: RMS norm, batch norm in training (also with a
//                  residual, relu and running statistics), and backward (layer norm, too) with all
//                  gradients wanted. All else runs as own: cudnn_norm_cuda.cpp has the reasons
#pragma once
#include <binade/kernels/base/provider.h>

namespace binade::kernels {

// Throws Error, which lists the valid names, for any other name.
inline void set_norm_provider(std::string_view name) { set_provider(ProviderFamily::norm, name); }
inline std::string_view norm_provider() { return provider(ProviderFamily::norm).name; }
// The variant that the provider's name selects.
inline KernelVariant norm_variant() { return provider(ProviderFamily::norm).variant; }

}  // namespace binade::kernels
