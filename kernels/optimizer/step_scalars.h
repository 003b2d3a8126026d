// A training step whose scalars stay on the device (kernels/optimizer/step_rule.h). The kernels, in
// the order of a step:
//   loss_seed      starts backward with the scale times the weight of the loss
//   step_stats     measures the scaled gradients, one call per memory range with one scale
//   step_decide    applies or skips, updates the scale, computes the factor for the gradients
//   step_prepare   scalars of each parameter range, and its update counter
//   sgd_step, adam_step, ... (kernels/optimizer*.h) with those scalars
//   schedule_step  the learning rates of the next step
// No call reads device memory on the host.
#pragma once
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/optimizer/step_rule.h>

#include <span>

namespace binade::kernels {

// seed = scale * weight; tag = scale, the factor that the gradients then have.
struct LossSeed {
  const View& loss;  // one floating element
  const View& scaler;
  const View& tag;   // f64 [1]
  const View& seed;  // like loss
  double weight;
};
BINADE_KERNEL(loss_seed, LossSeed, seed)

// y = x / (scale * tag), in the compute dtype of x: true gradients. Both dense, with the same
// strides.
struct UnscaleGradient {
  const View& x;
  const View& y;
  double scale;
  const View& tag;  // f64 [1]
};
BINADE_KERNEL(unscale_gradient, UnscaleGradient, y)

// Adds the statistics of a flat gradient to the scalars of an optimizer; `first` resets them
// before.
struct StepStats {
  const View& grad;
  double scale;              // grad is scale * tag times the true gradient
  const View& tag;           // f64 [1], kNoView for 1
  double position;           // of the first element, for first_position
  bool first;                // the first call of this step
  const View& step_scalars;  // OptimizerScalars
};
BINADE_KERNEL(step_stats, StepStats, step_scalars)

// After the statistics: sets step_scalars.replaces, 1 if this step must replace elements that are
// not finite before it is applied (AtFloor::clip).
struct StepReplaces {
  ScaleRule rule;
  const View& scaler;
  const View& step_scalars;
};
BINADE_KERNEL(step_replaces, StepReplaces, step_scalars)

struct StepDecide {
  StepRequest request;
  const View& scaler;        // ScalerScalars, kNoView without a scaler
  const View& step_scalars;  // OptimizerScalars
  const View& outcome;       // f64 [1]: kStepApplied, kStepOverflow or kStepHalted
};
BINADE_KERNEL(step_decide, StepDecide, step_scalars)

// An update counter in device memory: *to = *from + 1 if the step is applied, else *from.
struct UpdateCounter {
  const double* from;
  double* to;
};

// Computes the scalars of every parameter range, after counting the update.
struct StepPrepare {
  std::span<const UpdateCounter> counters;  // no `to` is another's `from`
  std::span<const RangeSource> parameter_ranges;
  const View& step_scalars;  // OptimizerScalars
  const View& result;        // f64 [parameter_ranges, kScalarsOf<RangeScalars>]
};
BINADE_KERNEL(step_prepare, StepPrepare, step_scalars)

// After an applied step step_scalars.position increases by one and rates become the row of the
// table for the new position; after the end of the table its last row stays.
struct ScheduleStep {
  const View& outcome;       // f64 [1], of step_decide
  const View& step_scalars;  // ScheduleScalars
  const View& table;         // f64 [rows, groups, k], contiguous
  const View& rates;         // f64 [groups, k]
};
BINADE_KERNEL(schedule_step, ScheduleStep, rates)

}  // namespace binade::kernels
