// Images read at positions that a grid gives.
#pragma once
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/image/interpolate.h>

namespace binade::kernels {

// What lies outside of an image: zeros, the nearest element of the border, or the image reflected
// at its border.
enum class GridPadding : uint8_t { zeros, border, reflection };

struct GridRule {
  Interpolation mode = Interpolation::bilinear;
  GridPadding padding = GridPadding::zeros;
  bool align_corners = false;
};

// y [N, C, P, Q]: x [N, C, H, W] at the positions grid [N, P, Q, 2], whose last dimension is
// {horizontal, vertical}. One floating dtype, any strides; only N and C may be 0. -1 and 1 are the
// outer edges of an image, with align_corners the centres of its outermost pixels. nearest: the
// pixel nearest to the position, of two the even one. NaN is read as -1; an infinite position is
// outside, and reflected it is the first pixel.
struct GridSampleForward {
  const View& x;
  const View& grid;
  const View& y;
  GridRule rule;
};
BINADE_KERNEL(grid_sample_forward, GridSampleForward, y)

// dx and dgrid, or one of them; the other is none. Terms of one element of dx are added in the
// order of the positions, in Compute<T>, and rounded once. dgrid is 0 for nearest and where a
// position was moved to the border.
struct GridSampleBackward {
  const View& x;
  const View& grid;
  const View& dy;
  const View& dx;
  const View& dgrid;
  GridRule rule;
};
BINADE_KERNEL(grid_sample_backward, GridSampleBackward, dy)

}  // namespace binade::kernels
