// Resampling of images. Positions are exact fractions, so results do not depend on how a dtype
// would round coordinates.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

enum class Interpolation : uint8_t { nearest, bilinear };

// y [N, C, P, Q] from x [N, C, H, W]; the same floating dtype, any strides; only N and C may be 0.
// nearest: y's row i is x's row floor(i H / P). bilinear: y's row i lies at max(0, (i + 0.5) H / P
// - 0.5), with align_corners at i (H - 1) / (P - 1), and blends the two rows beside it. Columns
// likewise.
struct InterpolateForward {
  const View& x;
  const View& y;
  Interpolation mode;
  bool align_corners = false;
};
BINADE_KERNEL(interpolate_forward, InterpolateForward, y)

// dx [N, C, H, W] from dy [N, C, P, Q]: each element of dx gathers its parts in a fixed order.
struct InterpolateBackward {
  const View& dy;
  const View& dx;
  Interpolation mode;
  bool align_corners = false;
};
BINADE_KERNEL(interpolate_backward, InterpolateBackward, dx)

}  // namespace binade::kernels
