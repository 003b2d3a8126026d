// Kernels of gradient clipping. A gradient is a contiguous vector of a floating dtype that holds
// scale * tag times the true gradient. A tag is f64 [1] in device memory; kNoView means 1.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// Adds sum(|g|^p) of the true gradient g to result (f64 [1]). For an infinite p result becomes the
// larger of itself and the largest |g|; NaN propagates.
struct GradientNorm {
  const View& grad;
  double scale;
  const View& tag;
  double p;
  const View& result;
};
BINADE_KERNEL(gradient_norm, GradientNorm, grad)

// Clamps the true gradient to [-limit, limit]. Leaves NaN and infinities unchanged.
struct ClampGradient {
  const View& grad;
  double scale;
  const View& tag;
  double limit;
};
BINADE_KERNEL(clamp_gradient, ClampGradient, grad)

// Replaces inf by the largest finite number of the dtype and NaN by 0; if `when` (f64 [1]) is
// given, only if it is not 0.
struct ReplaceNonFinite {
  const View& grad;
  const View& when = kNoView;
};
BINADE_KERNEL(replace_non_finite, ReplaceNonFinite, grad)

}  // namespace binade::kernels
