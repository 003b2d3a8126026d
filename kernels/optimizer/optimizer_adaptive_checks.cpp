#include <binade/kernels/optimizer/low_update_internal.h>
#include <binade/kernels/optimizer/optimizer_adaptive_internal.h>
#include <binade/kernels/optimizer/optimizer_internal.h>

namespace binade::kernels {

void check_arguments(const RMSpropStep& a) {
  check_step("rmsprop_step", a.param, a.master, a.grad, a.step_scalars);
  check_low("rmsprop_step", a.param, a.master, a.low);
  const DType compute = compute_dtype(a.param.dtype);
  check_flat("rmsprop_step", "square_avg", a.square_avg, a.param, compute);
  if (a.grad_avg) {
    check_flat("rmsprop_step", "grad_avg", a.grad_avg, a.param, compute);
  }
  if (a.momentum_buffer) {
    check_flat("rmsprop_step", "momentum_buffer", a.momentum_buffer, a.param, compute);
  }
  check(a.momentum == 0 || a.momentum_buffer || a.param.numel == 0, "rmsprop_step: got momentum ",
        a.momentum, " without a momentum_buffer, expected both or neither");
  check(a.alpha >= 0 && a.alpha <= 1, "rmsprop_step: got alpha ", a.alpha, ", expected 0 to 1");
}

void check_arguments(const AdagradStep& a) {
  check_step("adagrad_step", a.param, a.master, a.grad, a.step_scalars);
  check_low("adagrad_step", a.param, a.master, a.low);
  check_flat("adagrad_step", "sum", a.sum, a.param, compute_dtype(a.param.dtype));
  check(a.step_scalars || a.step >= 1, "adagrad_step: got step ", a.step, ", expected 1 or more");
}

RangeScalars step_scalars_of(const RMSpropStep& a) {
  return {.apply = 1,
          .multiplier = a.grad_multiplier,
          .lr = a.lr,
          .momentum = a.momentum,
          .update = 1,
          .first_scale = 1,
          .second_scale = 1};
}

RangeScalars step_scalars_of(const AdagradStep& a) {
  return {.apply = 1,
          .multiplier = a.grad_multiplier,
          .lr = a.lr,
          .momentum = 0,
          .update = static_cast<double>(a.step),
          .first_scale = 1,
          .second_scale = 1};
}

}  // namespace binade::kernels
