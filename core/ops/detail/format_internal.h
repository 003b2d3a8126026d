// Functions that the format lab shares with simulated formats.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade::detail {

// The elements of `scale` that are positive normal numbers, and 1 in place of the others.
Tensor positive_scale(const Tensor& scale);

}  // namespace binade::detail
