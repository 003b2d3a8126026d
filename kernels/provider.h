// Names of implementations, "own", "own:VARIANT", "library" or "auto", and the variant each stands
// for: what BINADE_GEMM, BINADE_CONV2D and their setters accept.
#pragma once
#include <binade/kernels/base/error.h>

#include <span>
#include <string>
#include <string_view>

namespace binade::kernels {

template <class Variant>
struct Provider {
  std::string_view name;
  Variant variant;
};

// The provider of this name; throws Error with the valid names. `source` is who asks: the setter or
// the environment variable; `op` what is provided.
template <class Variant>
const Provider<Variant>* find_provider(std::span<const Provider<Variant>> providers,
                                       std::string_view name, const char* op, const char* source) {
  std::string names;
  for (const Provider<Variant>& provider : providers) {
    if (provider.name == name) {
      return &provider;
    }
    names += (names.empty() ? "" : ", ") + std::string(provider.name);
  }
  fail(source, ": got the ", op, " provider \"", name, "\", expected one of ", names);
}

}  // namespace binade::kernels
