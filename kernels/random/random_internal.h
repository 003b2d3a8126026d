// Helpers of the random kernels that every backend uses.
#pragma once
#include <binade/kernels/random/random.h>

namespace binade::kernels {

void check_advance(const char* kernel, const View& advance, const View& y);

// The position of the first number; `advance` must be in host memory.
inline uint64_t position_of(uint64_t offset, const View& advance) {
  return offset + (advance ? static_cast<uint64_t>(*advance.as<int64_t>()) : 0);
}

}  // namespace binade::kernels
