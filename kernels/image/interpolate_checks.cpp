#include <binade/kernels/image/interpolate.h>

namespace binade::kernels {
namespace {

void check_images(const View& x, const View& y, Interpolation mode, bool align_corners) {
  constexpr int64_t kMost = int64_t{1} << 30;
  check(is_floating(x.dtype) && x.dtype == y.dtype && x.dim() == 4 && y.dim() == 4 &&
            x.size(0) == y.size(0) && x.size(1) == y.size(1),
        "interpolate: got ", x.dtype, " ", x.sizes, " and ", y.dtype, " ", y.sizes,
        ", expected one floating dtype, [N, C, H, W] and [N, C, P, Q]");
  for (int d = 2; d < 4; ++d) {
    check(x.size(d) >= 1 && y.size(d) >= 1 && x.size(d) < kMost && y.size(d) < kMost,
          "interpolate: got sizes ", x.sizes, " and ", y.sizes,
          ", expected heights and widths from 1 to 2^30");
  }
  check(!align_corners || mode == Interpolation::bilinear,
        "interpolate: got align_corners with nearest, expected it with bilinear only");
}

}  // namespace

void check_arguments(const InterpolateForward& a) {
  check_images(a.x, a.y, a.mode, a.align_corners);
}

void check_arguments(const InterpolateBackward& a) {
  check_images(a.dx, a.dy, a.mode, a.align_corners);
}

}  // namespace binade::kernels
