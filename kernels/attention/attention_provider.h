// Which implementation of attention runs on GPUs (kernels/base/provider.h): own, library or auto.
// BINADE_ATTENTION gives it until set_attention_provider is called. The CPU has one.
//
//   library        cuDNN 9, loaded by the first attention: an error if it is not found. It computes
//                  f16 and bf16 with head sizes that are multiples of 8 up to 128, causal or not,
//                  backward where queries and keys are multiples of 128. Masks, dropout and all
//                  else run as own; docs/providers.md says why.
#pragma once
#include <binade/kernels/base/provider.h>

namespace binade::kernels {

// Throws Error, which lists the valid names, for any other name.
inline void set_attention_provider(std::string_view name) {
  set_provider(ProviderFamily::attention, name);
}
inline std::string_view attention_provider() { return provider(ProviderFamily::attention).name; }
// What the provider's name means.
inline KernelVariant attention_variant() { return provider(ProviderFamily::attention).variant; }

}  // namespace binade::kernels
