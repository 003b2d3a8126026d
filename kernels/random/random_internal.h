// Checks of the arguments of random kernels that every backend makes.
#pragma once
#include <binade/kernels/random/random.h>

namespace binade::kernels {

void check_advance(const char* kernel, const View& advance, const View& y);

// Of the first number, where `advance` is in the memory of the host.
inline uint64_t position_of(uint64_t offset, const View& advance) {
  return offset + (advance ? static_cast<uint64_t>(*advance.as<int64_t>()) : 0);
}

}  // namespace binade::kernels
