#include <binade/kernels/sort/line_checks_internal.h>
#include <binade/kernels/sort/logcumsumexp.h>

namespace binade::kernels {
namespace {

void check_floating_line(const char* kernel, const View& x, int dim) {
  check_dim(kernel, x, dim);
  check(is_floating(x.dtype), kernel, ": got dtype ", x.dtype, ", expected a floating dtype");
}

}  // namespace

void check_arguments(const LogCumulativeSum& a) {
  check_floating_line("logcumsumexp_forward", a.x, a.dim);
  check_like("logcumsumexp_forward", "a result", a.y, a.x);
}

void check_arguments(const LogCumulativeSumBackward& a) {
  check_floating_line("logcumsumexp_backward", a.x, a.dim);
  check_like("logcumsumexp_backward", "dy", a.dy, a.x);
  check_like("logcumsumexp_backward", "dx", a.dx, a.x);
}

}  // namespace binade::kernels
