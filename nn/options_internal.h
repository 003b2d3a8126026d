// Checks of options that have no default (internal to nn/*.cpp).
#pragma once
#include <binade/kernels/base/error.h>

#include <cstdint>
#include <initializer_list>

namespace binade::nn {

struct SizeOption {
  const char* name;
  int64_t value;
};

// An option that is left out is 0, so the error names it.
inline void check_sizes(const char* module, std::initializer_list<SizeOption> sizes) {
  for (const auto& [name, value] : sizes) {
    check(value > 0, module, ": got ", name, " = ", value, ", expected a positive number",
          value == 0 ? "; set the option " : "", value == 0 ? name : "");
  }
}

}  // namespace binade::nn
