// Constants and helpers that every backend of gradient_values.h uses.
#pragma once
#include <binade/kernels/optimizer/gradient_values.h>

#include <limits>

namespace binade::kernels {

inline double largest_finite(DType dtype) {
  return dtype == DType::f16    ? 65504
         : dtype == DType::bf16 ? 0x1.fep127
         : dtype == DType::f32  ? std::numeric_limits<float>::max()
                                : std::numeric_limits<double>::max();
}

}  // namespace binade::kernels
