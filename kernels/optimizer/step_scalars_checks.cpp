#include <binade/kernels/optimizer/optimizer_internal.h>
#include <binade/kernels/optimizer/step_scalars.h>

namespace binade::kernels {

void check_arguments(const LossSeed& a) {
  check(a.loss.numel == 1 && is_floating(a.loss.dtype), "loss_seed: got a loss ", a.loss.dtype, " ",
        a.loss.sizes, ", expected one floating element");
  check(a.seed.numel == 1 && a.seed.dtype == a.loss.dtype, "loss_seed: got a seed ", a.seed.dtype,
        " ", a.seed.sizes, ", expected one element of ", a.loss.dtype);
  check_step_scalars("loss_seed", "scaler", a.scaler, kScalarsOf<ScalerScalars>);
  check_step_scalars("loss_seed", "tag", a.tag, 1);
}

void check_arguments(const UnscaleGradient& a) {
  check(is_floating(a.x.dtype) && a.y.dtype == compute_dtype(a.x.dtype) && a.x.sizes == a.y.sizes &&
            a.x.strides == a.y.strides && is_dense(a.x.sizes, a.x.strides),
        "unscale_gradient: got x ", a.x.dtype, " ", a.x.sizes, " and y ", a.y.dtype, " ", a.y.sizes,
        ", expected dense memory of one layout, y in the compute dtype of x");
  check_step_scalars("unscale_gradient", "tag", a.tag, 1);
}

void check_arguments(const StepStats& a) {
  check_flat_gradient("step_stats", a.grad);
  check_step_scalars("step_stats", "step_scalars", a.step_scalars, kScalarsOf<OptimizerScalars>);
  if (a.tag) {
    check_step_scalars("step_stats", "tag", a.tag, 1);
  }
}

void check_arguments(const StepReplaces& a) {
  check_step_scalars("step_replaces", "scaler", a.scaler, kScalarsOf<ScalerScalars>);
  check_step_scalars("step_replaces", "step_scalars", a.step_scalars, kScalarsOf<OptimizerScalars>);
}

void check_arguments(const StepDecide& a) {
  if (a.scaler) {
    check_step_scalars("step_decide", "scaler", a.scaler, kScalarsOf<ScalerScalars>);
  }
  check_step_scalars("step_decide", "step_scalars", a.step_scalars, kScalarsOf<OptimizerScalars>);
  check_step_scalars("step_decide", "outcome", a.outcome, 1);
}

void check_arguments(const StepPrepare& a) {
  check_step_scalars("step_prepare", "step_scalars", a.step_scalars, kScalarsOf<OptimizerScalars>);
  const auto parameter_ranges = static_cast<int64_t>(a.parameter_ranges.size());
  check(a.result.dtype == DType::f64 && a.result.contiguous &&
            a.result.numel == parameter_ranges * kScalarsOf<RangeScalars>,
        "step_prepare: got result ", a.result.dtype, " ", a.result.sizes,
        ", expected a contiguous f64 [", parameter_ranges, ", ", kScalarsOf<RangeScalars>, "]");
}

void check_arguments(const ScheduleStep& a) {
  check_step_scalars("schedule_step", "outcome", a.outcome, 1);
  check_step_scalars("schedule_step", "step_scalars", a.step_scalars, kScalarsOf<ScheduleScalars>);
  check(a.rates.dtype == DType::f64 && a.rates.dim() == 2, "schedule_step: got rates ",
        a.rates.dtype, " ", a.rates.sizes, ", expected f64 [groups, k]");
  check(a.table.dtype == DType::f64 && a.table.dim() == 3 && a.table.contiguous &&
            a.table.sizes[0] >= 1 && a.table.sizes[1] == a.rates.sizes[0] &&
            a.table.sizes[2] == a.rates.sizes[1],
        "schedule_step: got a table ", a.table.dtype, " ", a.table.sizes,
        ", expected a contiguous f64 [rows, ", a.rates.sizes[0], ", ", a.rates.sizes[1], "]");
}

}  // namespace binade::kernels
