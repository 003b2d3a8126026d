// The provider of layer norm, RMS norm and batch norm on GPUs (kernels/base/provider.h): own,
// library or auto. BINADE_NORM gives it until set_norm_provider is called. The CPU has only one
// implementation.
//
//   library        cuDNN 9, loaded by the first norm: an error if it is not found. It computes f32,
//                  f16 and bf16 in training, with weight and bias, and backward with all gradients
//                  wanted; batch norm also with the variance for running statistics, a residual and
//                  relu. All else runs as own, and so do group norm and evaluation.
#pragma once
#include <binade/kernels/base/provider.h>

namespace binade::kernels {

// Throws Error, which lists the valid names, for any other name.
inline void set_norm_provider(std::string_view name) { set_provider(ProviderFamily::norm, name); }
inline std::string_view norm_provider() { return provider(ProviderFamily::norm).name; }
// The variant that the provider's name selects.
inline KernelVariant norm_variant() { return provider(ProviderFamily::norm).variant; }

}  // namespace binade::kernels
