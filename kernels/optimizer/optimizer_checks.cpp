#include <binade/kernels/optimizer/low_update_internal.h>
#include <binade/kernels/optimizer/optimizer_internal.h>

namespace binade::kernels {

void check_flat(const char* op, const char* name, const View& view, const View& like, DType dtype) {
  check(view.dtype == dtype && view.sizes == like.sizes && view.contiguous && view.dim() == 1, op,
        ": got ", name, " ", view.dtype, " ", view.sizes,
        view.contiguous ? "" : " (not contiguous)", ", expected a contiguous ", dtype,
        " vector like param ", like.sizes);
}

void check_step(const char* op, const View& param, const View& master, const View& grad,
                const View& step_scalars) {
  check(is_floating(param.dtype), op, ": got param ", param.dtype, ", expected a floating dtype");
  check_flat(op, "param", param, param, param.dtype);
  check_flat(op, "grad", grad, param, param.dtype);
  if (master) {
    check(is_half(param.dtype), op, ": got a master for ", param.dtype,
          " param, expected one for f16 and bf16 only");
    check_flat(op, "master", master, param, compute_dtype(param.dtype));
  }
  if (step_scalars) {
    check_step_scalars(op, "step_scalars", step_scalars, kScalarsOf<RangeScalars>);
  }
}

void check_step_scalars(const char* op, const char* name, const View& view, int64_t length) {
  check(view.dtype == DType::f64 && view.dim() == 1 && view.contiguous && view.numel == length, op,
        ": got ", name, " ", view.dtype, " ", view.sizes, ", expected a contiguous f64 [", length,
        "]");
}

void check_flat_gradient(const char* op, const View& grad) {
  check(is_floating(grad.dtype), op, ": got ", grad.dtype, ", expected a floating dtype");
  check_flat(op, "grad", grad, grad, grad.dtype);
}

void check_arguments(const GradientStats& a) {
  check_flat_gradient("gradient_stats", a.grad);
  check_step_scalars("gradient_stats", "result", a.result, 2);
}

void check_arguments(const SGDStep& a) {
  check_step("sgd_step", a.param, a.master, a.grad, a.step_scalars);
  check_low("sgd_step", a.param, a.master, a.low);
  if (a.momentum_buffer) {
    check_flat("sgd_step", "momentum_buffer", a.momentum_buffer, a.param,
               compute_dtype(a.param.dtype));
  }
  check(a.momentum == 0 || a.momentum_buffer || a.param.numel == 0, "sgd_step: got momentum ",
        a.momentum, " without a momentum_buffer, expected both or neither");
  check(!a.nesterov || (a.momentum > 0 && a.dampening == 0),
        "sgd_step: got nesterov with momentum ", a.momentum, " and dampening ", a.dampening,
        ", expected momentum above 0 and dampening 0");
}

void check_arguments(const AdamStep& a) {
  check_step("adam_step", a.param, a.master, a.grad, a.step_scalars);
  check_low("adam_step", a.param, a.master, a.low);
  const DType compute = compute_dtype(a.param.dtype);
  check_flat("adam_step", "exp_avg", a.exp_avg, a.param, compute);
  check_flat("adam_step", "exp_avg_sq", a.exp_avg_sq, a.param, compute);
  if (a.max_exp_avg_sq) {
    check_flat("adam_step", "max_exp_avg_sq", a.max_exp_avg_sq, a.param, compute);
  }
  check(a.step_scalars || a.step >= 1, "adam_step: got step ", a.step, ", expected 1 or more");
  check(a.beta1 >= 0 && a.beta1 < 1 && a.beta2 >= 0 && a.beta2 < 1, "adam_step: got betas ",
        a.beta1, " and ", a.beta2, ", expected 0 to below 1");
}

RangeScalars step_scalars_of(const SGDStep& a) {
  return {.apply = 1,
          .multiplier = a.grad_multiplier,
          .lr = a.lr,
          .momentum = a.momentum,
          .update = a.first_step ? 1.0 : 2.0,
          .first_scale = 1,
          .second_scale = 1};
}

RangeScalars step_scalars_of(const AdamStep& a) {
  return range_scalars({.multiplier = a.grad_multiplier,
                        .lr = a.lr,
                        .momentum = a.beta1,
                        .update = static_cast<double>(a.step),
                        .beta2 = a.beta2});
}

}  // namespace binade::kernels
