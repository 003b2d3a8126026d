#include <binade/kernels/copy/triangle.h>

namespace binade::kernels {

void check_arguments(const Triangle& a) {
  check(a.x.dtype == a.y.dtype && a.x.sizes == a.y.sizes && a.x.dim() >= 2, "triangle: got x ",
        a.x.dtype, " ", a.x.sizes, " and y ", a.y.dtype, " ", a.y.sizes,
        ", expected the same [..., rows, columns]");
}

}  // namespace binade::kernels
