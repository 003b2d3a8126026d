// SourceLine: the line of a call, as a default argument. (clang 14 lacks std::source_location.)
#pragma once
#include <cstdint>

namespace binade {

struct SourceLine {
  const char* file = "";
  uint32_t line = 0;

  static constexpr SourceLine here(const char* file = __builtin_FILE(),
                                   uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace binade
