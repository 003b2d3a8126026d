// Resampling of images. Positions are exact fractions, so results do not depend on the dtype's
// rounding of coordinates.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

enum class Interpolation : uint8_t { nearest, bilinear };

// y [N, C, P, Q] from x [N, C, H, W]; the same floating dtype, any strides, no size but N and C 0.
// nearest: y's row i is x's row floor(i H / P). bilinear: row max(0, (i + 0.5) H / P - 0.5), with
// align_corners row i (H - 1) / (P - 1), between the rows beside it. Columns alike.
struct InterpolateForward {
  const View& x;
  const View& y;
  Interpolation mode;
  bool align_corners = false;
};
BINADE_KERNEL(interpolate_forward, InterpolateForward, y)

// dx [N, C, H, W] from dy [N, C, P, Q]: each element of dx gathers what it gave, in a fixed order.
struct InterpolateBackward {
  const View& dy;
  const View& dx;
  Interpolation mode;
  bool align_corners = false;
};
BINADE_KERNEL(interpolate_backward, InterpolateBackward, dx)

}  // namespace binade::kernels
