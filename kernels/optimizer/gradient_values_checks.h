// Argument checks of kernels/optimizer/gradient_values.h, for every device, and the numbers both
// use.
#pragma once
#include <binade/kernels/optimizer/gradient_values.h>

#include <limits>

namespace binade::kernels {

void check_gradient_norm(const GradientNorm& a);
void check_clamp_gradient(const ClampGradient& a);
void check_replace_non_finite(const ReplaceNonFinite& a);

inline double largest_finite(DType dtype) {
  return dtype == DType::f16    ? 65504
         : dtype == DType::bf16 ? 0x1.fep127
         : dtype == DType::f32  ? std::numeric_limits<float>::max()
                                : std::numeric_limits<double>::max();
}

}  // namespace binade::kernels
