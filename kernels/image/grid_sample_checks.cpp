#include <binade/kernels/image/grid_sample.h>

namespace binade::kernels {
namespace {

void check_images(const char* kernel, const View& x, const View& grid, const View& y) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const bool ranks = x.dim() == 4 && grid.dim() == 4 && y.dim() == 4;
  check(is_floating(x.dtype) && x.dtype == y.dtype && x.dtype == grid.dtype && ranks &&
            grid.sizes == Dims{x.size(0), y.size(2), y.size(3), 2} && y.size(0) == x.size(0) &&
            y.size(1) == x.size(1),
        kernel, ": got ", x.dtype, " ", x.sizes, ", a grid ", grid.dtype, " ", grid.sizes, " and ",
        y.dtype, " ", y.sizes,
        ", expected one floating dtype, [N, C, H, W], [N, P, Q, 2] and [N, C, P, Q]");
  for (int d = 2; d < 4; ++d) {
    check(x.size(d) >= 1 && x.size(d) < kMost && y.size(d) < kMost, kernel, ": got sizes ", x.sizes,
          " and ", y.sizes, ", expected heights and widths of the input from 1 to 2^30");
  }
}

void check_like(const char* what, const View& gradient, const View& of) {
  check(!gradient || (gradient.dtype == of.dtype && gradient.sizes == of.sizes),
        "grid_sample_backward: got ", what, " ", gradient.dtype, " ", gradient.sizes, ", expected ",
        of.dtype, " ", of.sizes);
}

}  // namespace

void check_arguments(const GridSampleForward& a) {
  check_images("grid_sample_forward", a.x, a.grid, a.y);
}

void check_arguments(const GridSampleBackward& a) {
  check_images("grid_sample_backward", a.x, a.grid, a.dy);
  check_like("dx", a.dx, a.x);
  check_like("dgrid", a.dgrid, a.grid);
}

}  // namespace binade::kernels
