#include <binade/kernels/optimizer/gradient_values_internal.h>
#include <binade/kernels/optimizer/optimizer_internal.h>

namespace binade::kernels {
namespace {

void check_tag(const char* op, const View& tag) {
  if (tag) {
    check_step_scalars(op, "tag", tag, 1);
  }
}

}  // namespace

void check_arguments(const GradientNorm& a) {
  check_flat_gradient("gradient_norm", a.grad);
  check_tag("gradient_norm", a.tag);
  check_step_scalars("gradient_norm", "result", a.result, 1);
  check(a.p > 0, "gradient_norm: got p = ", a.p, ", expected a positive number or infinity");
}

void check_arguments(const ClampGradient& a) {
  check_flat_gradient("clamp_gradient", a.grad);
  check_tag("clamp_gradient", a.tag);
  check(a.limit >= 0, "clamp_gradient: got limit = ", a.limit, ", expected a number >= 0");
}

void check_arguments(const ReplaceNonFinite& a) {
  check_flat_gradient("replace_non_finite", a.grad);
  check_tag("replace_non_finite", a.when);
}

}  // namespace binade::kernels
