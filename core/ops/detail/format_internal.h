// Functions that the format lab shares with simulated formats.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade::detail {

// The scale where it is a positive normal number, else 1.
Tensor positive_scale(const Tensor& scale);

}  // namespace binade::detail
