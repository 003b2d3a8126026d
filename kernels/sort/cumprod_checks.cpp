#include <binade/kernels/sort/cumprod.h>
#include <binade/kernels/sort/line_checks_internal.h>

namespace binade::kernels {
void check_arguments(const CumulativeProduct& a) {
  check_dim("cumprod_forward", a.x, a.dim);
  check(is_floating(a.x.dtype) || a.x.dtype == DType::i64 || a.x.dtype == DType::i32,
        "cumprod_forward: got dtype ", a.x.dtype, ", expected a floating dtype, i64 or i32");
  check_like("cumprod_forward", "a result", a.y, a.x);
}

void check_arguments(const CumulativeProductBackward& a) {
  check_dim("cumprod_backward", a.x, a.dim);
  check(is_floating(a.x.dtype), "cumprod_backward: got dtype ", a.x.dtype,
        ", expected a floating dtype");
  check_like("cumprod_backward", "dy", a.dy, a.x);
  check_like("cumprod_backward", "dx", a.dx, a.x);
}

}  // namespace binade::kernels
