// How values of several ranks become one.
#pragma once
#include <cstdint>

namespace binade::dist {

// avg is the sum divided by the number of ranks: before the sum for f16 and bf16, where the sum
// might overflow, and after it for the others (integers truncate toward zero).
enum class ReduceOp : uint8_t { sum, avg, max, min };

constexpr const char* to_string(ReduceOp op) {
  constexpr const char* kName[] = {"sum", "avg", "max", "min"};
  return kName[static_cast<int>(op)];
}

}  // namespace binade::dist
