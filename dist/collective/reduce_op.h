// How values of several ranks are combined into one.
#pragma once
#include <cstdint>

namespace binade::dist {

// avg is the sum divided by the number of ranks. f16 and bf16 divide before the sum, because the
// sum might overflow; other dtypes divide after it (integers truncate toward zero).
enum class ReduceOp : uint8_t { sum, avg, max, min };

constexpr const char* to_string(ReduceOp op) {
  constexpr const char* kName[] = {"sum", "avg", "max", "min"};
  return kName[static_cast<int>(op)];
}

}  // namespace binade::dist
