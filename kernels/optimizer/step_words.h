// A training step whose numbers stay on the device (the words of kernels/optimizer/step_rule.h). In
// the order of a step:
//   loss_seed      begins backward with the scale times the loss's weight
//   step_stats     measures the scaled gradients, one call per stretch of memory with one scale
//   step_decide    applies or skips, moves the scale, computes the factor on the gradients
//   step_prepare   numbers of each stretch that is updated alike, and its update counter
//   sgd_step, adam_step, ... (kernels/optimizer*.h) with those words
//   schedule_step  the rates of the next step
// No call reads device memory on the host.
#pragma once
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/optimizer/step_rule.h>

#include <span>

namespace binade::kernels {

// seed = scale * weight; tag = scale, which is what the gradients then carry.
struct LossSeed {
  const View& loss;  // one floating element
  const View& scaler;
  const View& tag;   // f64 [1]
  const View& seed;  // like loss
  double weight;
};
BINADE_KERNEL(loss_seed, LossSeed, seed)

// y = x / (scale * tag), in the stat dtype of x: true gradients. Both dense, of the same strides.
struct UnscaleGradient {
  const View& x;
  const View& y;
  double scale;
  const View& tag;  // f64 [1]
};
BINADE_KERNEL(unscale_gradient, UnscaleGradient, y)

// Adds the statistics of a flat gradient to the words of an optimizer, or begins anew.
struct StepStats {
  const View& grad;
  double scale;       // grad is scale * tag times the true gradient
  const View& tag;    // f64 [1], kNoView for 1
  double position;    // of the first element, for first_position
  bool first;         // of this step
  const View& words;  // OptimizerWords
};
BINADE_KERNEL(step_stats, StepStats, words)

// After the statistics: words.replaces = whether this step must replace what is not finite before
// it is applied: AtFloor::clip.
struct StepReplaces {
  ScaleRule rule;
  const View& scaler;
  const View& words;
};
BINADE_KERNEL(step_replaces, StepReplaces, words)

struct StepDecide {
  StepRequest request;
  const View& scaler;   // ScalerWords, kNoView without a scaler
  const View& words;    // OptimizerWords
  const View& outcome;  // f64 [1]: kStepApplied, kStepOverflow or kStepHalted
};
BINADE_KERNEL(step_decide, StepDecide, words)

// An update counter in device memory: *to = *from + 1 where the step is applied, else *from.
struct UpdateCounter {
  const double* from;
  double* to;
};

struct StepPrepare {  // the words of every stretch, after its counter moved on
  std::span<const UpdateCounter> counters;  // no `to` is another's `from`
  std::span<const StretchSource> stretches;
  double beta2;        // of Adam; 0 without
  const View& words;   // OptimizerWords
  const View& result;  // f64 [stretches, kWordsOf<StretchWords>]
};
BINADE_KERNEL(step_prepare, StepPrepare, words)

// After a step: where it was applied, words.position moves on by one and rates become the row of
// the table for it; the last row stands for what comes after.
struct ScheduleStep {
  const View& outcome;  // f64 [1], of step_decide
  const View& words;    // ScheduleWords
  const View& table;    // f64 [rows, groups, k], contiguous
  const View& rates;    // f64 [groups, k]
};
BINADE_KERNEL(schedule_step, ScheduleStep, rates)

}  // namespace binade::kernels
