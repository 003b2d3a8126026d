// Elements that a unary map has in flight a thread where it cannot take vectors (cuda/map.cuh).
#pragma once
#include <binade/kernels/pointwise/pointwise.h>

namespace binade::kernels {

// Functions of much code would take the registers, and most of the compiler's time, for more copies
// of it; strided elements cost a sector each, of which two a thread fill a GPU's memory queues.
constexpr int unary_unroll(Unary op) {
  enum Code : uint8_t { much = 2, little = 4 };
#define BINADE_CODE(name, functor, saved, code, ...) code,
  constexpr Code kCode[] = {BINADE_UNARY_OPS(BINADE_CODE)};
#undef BINADE_CODE
  return kCode[static_cast<int>(op)];
}

}  // namespace binade::kernels
