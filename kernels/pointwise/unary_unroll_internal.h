// Elements per thread that a unary map has in flight if it cannot use vectors (cuda/map.cuh).
#pragma once
#include <binade/kernels/pointwise/pointwise.h>

namespace binade::kernels {

// More copies of a long formula need more registers and most of the compile time. A strided element
// costs one sector; two per thread fill a GPU's memory queues.
constexpr int unary_unroll(Unary op) {
  enum Code : uint8_t { much = 2, little = 4 };
#define BINADE_CODE(name, functor, saved, code, ...) code,
  constexpr Code kCode[] = {BINADE_UNARY_OPS(BINADE_CODE)};
#undef BINADE_CODE
  return kCode[static_cast<int>(op)];
}

}  // namespace binade::kernels
