#include <binade/kernels/optimizer/low_update_internal.h>
#include <binade/kernels/optimizer/optimizer_internal.h>
#include <binade/kernels/optimizer/optimizer_moment_internal.h>

namespace binade::kernels {

void check_arguments(const MomentStep& a) {
  check_step("moment_step", a.param, a.master, a.grad, a.step_scalars);
  check_low("moment_step", a.param, a.master, a.low);
  const DType compute = compute_dtype(a.param.dtype);
  check_flat("moment_step", "exp_avg", a.exp_avg, a.param, compute);
  check_flat("moment_step", "exp_avg_sq", a.exp_avg_sq, a.param, compute);
  check(a.step_scalars || a.step >= 1, "moment_step: got step ", a.step, ", expected 1 or more");
  check(a.beta1 >= 0 && a.beta1 < 1 && a.beta2 >= 0 && a.beta2 < 1, "moment_step: got betas ",
        a.beta1, " and ", a.beta2, ", expected 0 to below 1");
  check(a.momentum_decay >= 0, "moment_step: got momentum_decay ", a.momentum_decay,
        ", expected 0 or more");
}

RangeScalars step_scalars_of(const MomentStep& a) {
  return range_scalars({.multiplier = a.grad_multiplier,
                        .lr = a.lr,
                        .momentum = a.beta1,
                        .update = static_cast<double>(a.step),
                        .beta2 = a.beta2});
}

}  // namespace binade::kernels
