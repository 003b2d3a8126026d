// The numbers of a training step that a device keeps for itself, and the rules that change them.
//
// A step on a device waits for no host: loss scale, counters, learning rates and the decision to
// apply or skip are f64 words in device memory, laid out as the structs below (vectors of doubles;
// counts are exact up to 2^53). The rules are functions for both sides.
#pragma once
#include <binade/kernels/optimizer/scale_rule.h>

#include <cmath>
#include <cstdint>

namespace binade::kernels {

// Of a loss scaler.
struct ScalerWords {
  double scale = 0, growth_tracker = 0, skipped_steps = 0;
  double needs_full_precision = 0;  // 1 after an overflow at the floor with AtFloor::fp32
  double loss = 0;                  // with which the last scaled backward began
  double overflow_position = -1;    // the first element that was not finite, in the last overflow
  // An overflow at the floor with AtFloor::error: 1, or 2 where gradients did not all come from a
  // backward with this scale. No step is applied until the host has read this and thrown.
  double halted = 0;
  double halted_loss = 0, halted_after = 0;  // the loss then, and how many steps came after
};

// Of an optimizer.
struct OptimizerWords {
  // Of the true gradients of this step: sum of squares of the finite elements, number of the
  // others, position of the first of those (its place in step_stats), -1 if there is none.
  double squares = 0, non_finite = 0, first_position = 0;
  double scale = 0, mixed = 0;  // of the first measured gradient; 1: another had a different one
  double apply = 0;             // 1: this step changes parameters
  double replaces = 0;          // 1: before that, elements that are not finite are replaced
  double factor = 0;            // on the true gradients: division by an accumulation window
  double clip = 1;              // and clipping
  double norm = 0;           // of the true, divided gradients where the step measured it, else -1
  double applied_steps = 0;  // so far
};

// Of a stretch of parameters that are updated alike in this step.
struct StretchWords {
  double apply = 0, multiplier = 0, lr = 0;
  double momentum = 0;      // beta1 of Adam and its like
  double update = 0;        // 1 in the first update of these parameters
  double first_scale = 0;   // 1 / (1 - beta1^update)
  double second_scale = 0;  // 1 / sqrt(1 - beta2^update)
};

template <class Words>
inline constexpr int64_t kWordsOf = sizeof(Words) / sizeof(double);

// The words of a stretch whose `update` is the given one.
struct StretchNumbers {
  double multiplier, lr, momentum, update, beta2;
};
BINADE_HD inline StretchWords stretch_words(const StretchNumbers& n) {
  return {.apply = 1,
          .multiplier = n.multiplier,
          .lr = n.lr,
          .momentum = n.momentum,
          .update = n.update,
          .first_scale = 1 / (1 - std::pow(n.momentum, n.update)),
          .second_scale = 1 / std::sqrt(1 - std::pow(n.beta2, n.update))};
}

// What the words of a stretch come from; pointers to the memory of the device.
struct StretchSource {
  double scale;       // its gradients are scale * tag times the true ones
  const double* tag;  // null for 1
  const double* lr;
  const double* momentum;
  const double* counter;  // updates of its parameters, this one included
};
// What multiplies the stored gradient, `scale` times the true one. Written so that a clip of the
// step and one that has changed the scale before (optim/clip.h) give the same bits.
BINADE_HD inline double gradient_multiplier(double factor, double clip, double scale) {
  return factor / (scale / clip);
}
BINADE_HD inline StretchWords prepare_stretch(const StretchSource& source, double beta2,
                                              const OptimizerWords& words) {
  const double scale = source.tag ? source.scale * *source.tag : source.scale;
  StretchWords w =
      stretch_words({.multiplier = gradient_multiplier(words.factor, words.clip, scale),
                     .lr = *source.lr,
                     .momentum = *source.momentum,
                     .update = *source.counter,
                     .beta2 = beta2});
  w.apply = words.apply;
  return w;
}

// Of a schedule: its position, the number of applied steps since it began, and that of the first
// row of its table.
struct ScheduleWords {
  double position = 0, first = 0;
};
BINADE_HD inline int64_t schedule_row(const ScheduleWords& words, int64_t rows) {
  const auto row = static_cast<int64_t>(words.position - words.first);
  return row < 0 ? 0 : row < rows ? row : rows - 1;
}

// Statistics of true gradients.
struct Measurement {
  double squares, non_finite, first_position, scale;
};
BINADE_HD inline void begin_measurement(OptimizerWords& words) {
  words.squares = words.non_finite = words.scale = words.mixed = 0;
  words.first_position = -1;
}
BINADE_HD inline void add_measurement(const Measurement& part, OptimizerWords& words) {
  words.mixed = words.mixed != 0 || (words.scale != 0 && words.scale != part.scale) ? 1 : 0;
  words.scale = part.scale;
  words.squares += part.squares;
  words.non_finite += part.non_finite;
  if (part.non_finite != 0 &&
      (words.first_position < 0 || part.first_position < words.first_position)) {
    words.first_position = part.first_position;
  }
}

// How a step ended, as a word.
inline constexpr double kStepApplied = 0, kStepOverflow = 1, kStepHalted = 3;

// What the host knows about a step when it asks for it.
struct StepRequest {
  double divisor = 1;
  double clip_norm = 0;       // 0: no clipping
  bool check_finite = false;  // skip where an element is not finite; always with a scaler
  bool measured = false;      // the gradients were measured
  bool stale = false;         // they come from no backward of the scaler
  ScaleRule rule = {};
};

inline constexpr double kClipEpsilon = 1e-6;

// The factor on true gradients of this norm that keeps them within clip_norm. With elements that
// are not finite it is that of an infinite norm: finite elements become 0, the others NaN.
BINADE_HD inline double clip_factor(double clip_norm, double norm, bool finite) {
  const double factor = clip_norm / (norm + kClipEpsilon);
  return !finite ? 0 : factor < 1 ? factor : 1;
}

// Decides whether the measured gradients are applied, moves the scaler on (`scaler` may be null),
// and returns how the step ends. Gradients whose bad elements were replaced are measured again
// before.
BINADE_HD inline double decide_step(const StepRequest& request, ScalerWords* scaler,
                                    OptimizerWords& words) {
  const bool finite = !request.measured || words.non_finite == 0;
  words.apply = 0;
  if (scaler) {
    const bool replaced = words.replaces != 0;
    if (scaler->halted != 0) {
      scaler->halted_after += 1;
      return kStepHalted;
    }
    if (!finite && !replaced) {
      scaler->overflow_position = words.first_position;
      const bool floor = scale_at_floor(request.rule, scaler->scale);
      if (floor && request.rule.at_floor == AtFloor::error) {
        scaler->halted = request.stale || words.mixed != 0 ? 2 : 1;
        scaler->halted_loss = scaler->loss;
        scaler->halted_after = 0;
        return kStepHalted;
      }
      if (floor && request.rule.at_floor == AtFloor::fp32) {
        scaler->needs_full_precision = 1;
      }
      update_scale(request.rule, true, scaler->scale, scaler->growth_tracker,
                   scaler->skipped_steps);
      return kStepOverflow;
    }
    if (replaced) {
      scaler->growth_tracker = 0;
    } else {
      update_scale(request.rule, false, scaler->scale, scaler->growth_tracker,
                   scaler->skipped_steps);
    }
  } else if (!finite && request.check_finite) {
    words.norm = -1;
    return kStepOverflow;
  }
  words.norm = request.measured ? std::sqrt(words.squares) / request.divisor : -1;
  words.factor = 1 / request.divisor;
  words.clip = 1;
  if (request.clip_norm > 0) {
    words.clip = clip_factor(request.clip_norm, words.norm, finite);
  }
  words.apply = 1;
  words.applied_steps += 1;
  return kStepApplied;
}

// Whether a step with these measured gradients replaces what is not finite and is applied then: an
// overflow of which the scaler takes note.
BINADE_HD inline bool must_replace(const ScaleRule& rule, ScalerWords& scaler,
                                   const OptimizerWords& words) {
  const bool replaces = words.non_finite != 0 && scaler.halted == 0 &&
                        rule.at_floor == AtFloor::clip && scale_at_floor(rule, scaler.scale);
  scaler.overflow_position = replaces ? words.first_position : scaler.overflow_position;
  return replaces;
}

}  // namespace binade::kernels
