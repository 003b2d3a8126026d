// Resampling of images.
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/image/interpolate.h>

namespace binade {

using kernels::Interpolation;
struct InterpolateOptions {
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;  // bilinear: the corner pixels stay where they are
};

// x [N, C, H, W] -> [N, C, height, width], in x's memory order; kernels/image/interpolate.h has the
// positions. Differentiable any number of times.
Tensor interpolate(const Tensor& x, int64_t height, int64_t width,
                   const InterpolateOptions& options = {});

}  // namespace binade
