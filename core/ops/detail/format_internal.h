// What the ops of the format lab and simulated formats share.
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/formats/format_rounding.h>

#include <cstdint>

namespace binade::detail {

// The elements of `scale` that are positive normal numbers, and 1 in place of the others.
Tensor positive_scale(const Tensor& scale);

struct DrawnRoundings {
  uint64_t seed = 0, offset = 0;
  Tensor advance = {};
};
// Random numbers for `count` roundings; none are taken where none are needed.
DrawnRoundings draw_roundings(Rounding rounding, uint64_t count);

}  // namespace binade::detail
