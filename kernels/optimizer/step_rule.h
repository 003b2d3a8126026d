// The scalars of a training step that stay on the device, and the rules that change them.
//
// A step on a device does not wait for the host: loss scale, counters, learning rates and the
// decision to apply or skip are f64 scalars in device memory, laid out as the structs below
// (vectors of doubles; counts are exact up to 2^53). The rules are functions for host and device.
#pragma once
#include <binade/kernels/optimizer/scale_rule.h>

#include <cmath>
#include <cstdint>

namespace binade::kernels {

// Device scalars of a loss scaler.
struct ScalerScalars {
  double scale = 0, growth_tracker = 0, skipped_steps = 0;
  double needs_full_precision = 0;  // 1 after an overflow at the floor with AtFloor::fp32
  double loss = 0;                  // of the last scaled backward
  double overflow_position = -1;    // the first element that was not finite, in the last overflow
  // After an overflow at the floor with AtFloor::error: 1, or 2 if some gradients did not come from
  // a backward with this scale. No step is applied until the host has read this and thrown.
  double halted = 0;
  double halted_loss = 0, halted_after = 0;  // the loss then, and how many steps followed
  double overflows = 0;                      // since the last growth of the scale
};

// Device scalars of an optimizer.
struct OptimizerScalars {
  // Over the true gradients of this step: sum of squares of the finite elements, number of the
  // others, and the position of the first of the others (as given to step_stats), -1 if there is
  // none.
  double squares = 0, non_finite = 0, first_position = 0;
  double scale = 0, mixed = 0;  // of the first measured gradient; mixed = 1: another one differed
  double apply = 0;             // 1: this step changes parameters
  double replaces = 0;          // 1: elements that are not finite are replaced first
  double factor = 0;            // multiplies true gradients: 1 / the accumulation window
  double clip = 1;              // and the clip factor
  double norm = 0;              // of the true, divided gradients if the step measured it, else -1
  double applied_steps = 0;     // so far
};

// Device scalars of a range of parameters with the same hyperparameters in this step.
struct RangeScalars {
  double apply = 0, multiplier = 0, lr = 0;
  double momentum = 0;      // beta1 of Adam etc.
  double update = 0;        // 1 in the first update of these parameters
  double first_scale = 0;   // 1 / (1 - beta1^update)
  double second_scale = 0;  // 1 / sqrt(1 - beta2^update)
};

// The number of scalars in one of these structs.
template <class Scalars>
inline constexpr int64_t kScalarsOf = sizeof(Scalars) / sizeof(double);

// The scalars of a parameter range, given the number of its update.
struct RangeNumbers {
  double multiplier, lr, momentum, update, beta2;
};
BINADE_HD inline RangeScalars range_scalars(const RangeNumbers& n) {
  return {.apply = 1,
          .multiplier = n.multiplier,
          .lr = n.lr,
          .momentum = n.momentum,
          .update = n.update,
          .first_scale = 1 / (1 - std::pow(n.momentum, n.update)),
          .second_scale = 1 / std::sqrt(1 - std::pow(n.beta2, n.update))};
}

// The inputs for the scalars of a parameter range; pointers are to device memory.
struct RangeSource {
  double scale;       // its gradients are scale * tag times the true ones
  const double* tag;  // null means 1
  const double* lr;
  const double* momentum;
  const double* counter;  // updates of its parameters, including this one
  double beta2 = 0;       // of Adam; 0 for others
};
// The factor for a stored gradient, which is `scale` times the true one. Written so that a clip in
// the step and one that has already changed the scale (optim/clip.h) give the same bits.
BINADE_HD inline double gradient_multiplier(double factor, double clip, double scale) {
  return factor / (scale / clip);
}
BINADE_HD inline RangeScalars prepare_range(const RangeSource& source,
                                            const OptimizerScalars& step_scalars) {
  const double scale = source.tag ? source.scale * *source.tag : source.scale;
  RangeScalars w = range_scalars(
      {.multiplier = gradient_multiplier(step_scalars.factor, step_scalars.clip, scale),
       .lr = *source.lr,
       .momentum = *source.momentum,
       .update = *source.counter,
       .beta2 = source.beta2});
  w.apply = step_scalars.apply;
  return w;
}

// Device scalars of a schedule: its position, that is the number of applied steps since it began,
// and the position of the first row of its table.
struct ScheduleScalars {
  double position = 0, first = 0;
};
BINADE_HD inline int64_t schedule_row(const ScheduleScalars& step_scalars, int64_t rows) {
  const auto row = static_cast<int64_t>(step_scalars.position - step_scalars.first);
  return row < 0 ? 0 : row < rows ? row : rows - 1;
}

// Statistics of true gradients.
struct Measurement {
  double squares, non_finite, first_position, scale;
};
BINADE_HD inline void begin_measurement(OptimizerScalars& step_scalars) {
  step_scalars.squares = step_scalars.non_finite = step_scalars.scale = step_scalars.mixed = 0;
  step_scalars.first_position = -1;
}
BINADE_HD inline void add_measurement(const Measurement& part, OptimizerScalars& step_scalars) {
  step_scalars.mixed =
      step_scalars.mixed != 0 || (step_scalars.scale != 0 && step_scalars.scale != part.scale) ? 1
                                                                                               : 0;
  step_scalars.scale = part.scale;
  step_scalars.squares += part.squares;
  step_scalars.non_finite += part.non_finite;
  if (part.non_finite != 0 &&
      (step_scalars.first_position < 0 || part.first_position < step_scalars.first_position)) {
    step_scalars.first_position = part.first_position;
  }
}

// How a step ended, as a device scalar.
inline constexpr double kStepApplied = 0, kStepOverflow = 1, kStepHalted = 3;

// The arguments of a step that the host knows when it requests the step.
struct StepRequest {
  double divisor = 1;
  double clip_norm = 0;       // 0: no clipping
  bool check_finite = false;  // skip if an element is not finite; always with a scaler
  bool measured = false;      // the gradients were measured
  bool stale = false;         // they do not come from a backward of the scaler
  ScaleRule rule = {};
};

inline constexpr double kClipEpsilon = 1e-6;

// The factor that limits the norm of the true gradients to clip_norm. If some elements are not
// finite it is the factor for an infinite norm: finite elements become 0, the others NaN.
BINADE_HD inline double clip_factor(double clip_norm, double norm, bool finite) {
  const double factor = clip_norm / (norm + kClipEpsilon);
  return !finite ? 0 : factor < 1 ? factor : 1;
}

BINADE_HD inline ScaleNumbers<double> scale_numbers(ScalerScalars& scaler) {
  return {.scale = scaler.scale,
          .growth_tracker = scaler.growth_tracker,
          .skipped_steps = scaler.skipped_steps,
          .overflows = scaler.overflows};
}

// Decides whether the measured gradients are applied, updates the scaler (`scaler` may be null),
// and returns how the step ends. If bad elements were replaced, the gradients must be measured
// again first.
BINADE_HD inline double decide_step(const StepRequest& request, ScalerScalars* scaler,
                                    OptimizerScalars& step_scalars) {
  const bool finite = !request.measured || step_scalars.non_finite == 0;
  step_scalars.apply = 0;
  if (scaler) {
    const bool replaced = step_scalars.replaces != 0;
    if (scaler->halted != 0) {
      scaler->halted_after += 1;
      return kStepHalted;
    }
    if (!finite && !replaced) {
      scaler->overflow_position = step_scalars.first_position;
      const bool floor = scale_at_floor(request.rule, scaler->scale);
      if (floor && request.rule.at_floor == AtFloor::error) {
        scaler->halted = request.stale || step_scalars.mixed != 0 ? 2 : 1;
        scaler->halted_loss = scaler->loss;
        scaler->halted_after = 0;
        return kStepHalted;
      }
      if (floor && request.rule.at_floor == AtFloor::fp32) {
        scaler->needs_full_precision = 1;
      }
      update_scale(request.rule, true, scale_numbers(*scaler));
      return kStepOverflow;
    }
    if (replaced) {
      scaler->growth_tracker = 0;
    } else {
      update_scale(request.rule, false, scale_numbers(*scaler));
    }
  } else if (!finite && request.check_finite) {
    step_scalars.norm = -1;
    return kStepOverflow;
  }
  step_scalars.norm = request.measured ? std::sqrt(step_scalars.squares) / request.divisor : -1;
  step_scalars.factor = 1 / request.divisor;
  step_scalars.clip = 1;
  if (request.clip_norm > 0) {
    step_scalars.clip = clip_factor(request.clip_norm, step_scalars.norm, finite);
  }
  step_scalars.apply = 1;
  step_scalars.applied_steps += 1;
  return kStepApplied;
}

// True if a step with these measured gradients must replace the elements that are not finite before
// it is applied. The scaler counts this as an overflow.
BINADE_HD inline bool must_replace(const ScaleRule& rule, ScalerScalars& scaler,
                                   const OptimizerScalars& step_scalars) {
  const bool replaces = step_scalars.non_finite != 0 && scaler.halted == 0 &&
                        rule.at_floor == AtFloor::clip && scale_at_floor(rule, scaler.scale);
  scaler.overflow_position = replaces ? step_scalars.first_position : scaler.overflow_position;
  return replaces;
}

}  // namespace binade::kernels
