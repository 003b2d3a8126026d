// Names of implementations ("own", "own:VARIANT", "library", "auto") and the variant that each
// selects: the values of BINADE_GEMM, BINADE_CONV2D and their setters.
#pragma once
#include <binade/kernels/base/error.h>

#include <atomic>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

namespace binade::kernels {

template <class Variant>
struct Provider {
  std::string_view name;
  Variant variant;
  const char* missing = nullptr;  // why this build does not have it
};

// The process-wide choice among the providers of an operation. Until set() is called it is the one
// that the environment variable names, else the first of the list. The list must outlive it.
template <class Variant>
class ProviderChoice {
 public:
  ProviderChoice(std::span<const Provider<Variant>> providers, const char* op, const char* variable)
      : providers_(providers), op_(op) {
    const char* name = std::getenv(variable);
    current_ = name ? find(name, variable) : &providers_[0];
  }
  // Throws Error with the valid names; `source` names who asks.
  void set(std::string_view name, const char* source) { current_ = find(name, source); }
  const Provider<Variant>& get() const { return *current_.load(); }

 private:
  const Provider<Variant>* find(std::string_view name, const char* source) const {
    std::string names;
    for (const Provider<Variant>& provider : providers_) {
      if (provider.name == name) {
        check(!provider.missing, source, ": got the ", op_, " provider \"", name, "\", but ",
              provider.missing, "; use \"own\"");
        return &provider;
      }
      names += (names.empty() ? "" : ", ") + std::string(provider.name);
    }
    fail(source, ": got the ", op_, " provider \"", name, "\", expected one of ", names);
  }

  std::span<const Provider<Variant>> providers_;
  const char* op_;
  std::atomic<const Provider<Variant>*> current_;
};

}  // namespace binade::kernels
