// How a loss scale changes: one rule for the host and for device scalars (step_rule.h), so that a
// scaler in host memory and one in device memory have the same sequence of scales.
#pragma once
#include <binade/kernels/base/host_device.h>

#include <cstdint>

namespace binade::kernels {

// The reaction to an overflow when the scale cannot decrease any more.
enum class AtFloor : uint8_t {
  error,  // throw, with the cause
  skip,   // skip the step and go on
  fp32,   // skip the step and ask for full precision: needs_full_precision() becomes true
  clip,   // replace inf by the largest finite number and NaN by 0, and apply the step
};

struct ScaleRule {
  double growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;  // finite steps in a row
  int64_t hysteresis = 1;          // overflows since the last growth before the scale decreases
  double min_scale = 0, max_scale = 0;
  AtFloor at_floor = AtFloor::error;
};

// True if the scale cannot decrease any more.
BINADE_HD inline bool scale_at_floor(const ScaleRule& rule, double scale) {
  return rule.backoff_factor == 1 || scale <= rule.min_scale;
}

// The numbers that the rule changes. Count is an integer, or a double in device memory.
template <class Count>
struct ScaleNumbers {
  double& scale;
  Count& growth_tracker;  // finite steps in a row
  Count& skipped_steps;
  Count& overflows;  // since the last growth
};

// Updates the scale after a step. A finite step increments the growth count; at growth_interval the
// scale grows, and both counts restart at 0. An overflow resets the growth count; from overflow
// number `hysteresis` on it lowers the scale (Megatron-LM's rule; 1 is PyTorch's). Growth stops at
// max_scale and never exceeds the largest float; the scale does not fall below min_scale.
template <class Count>
BINADE_HD inline void update_scale(const ScaleRule& rule, bool overflow, ScaleNumbers<Count> now) {
  constexpr double kLargestFloat = 0x1.fffffep127;
  if (overflow) {
    now.growth_tracker = 0;
    now.skipped_steps += 1;
    now.overflows += 1;
    if (now.overflows >= static_cast<Count>(rule.hysteresis)) {
      const double fallen = now.scale * rule.backoff_factor;
      const double floor = now.scale < rule.min_scale ? now.scale : rule.min_scale;
      now.scale = fallen > floor ? fallen : floor;
    }
    return;
  }
  now.growth_tracker += 1;
  if (now.growth_tracker < static_cast<Count>(rule.growth_interval)) {
    return;
  }
  now.growth_tracker = 0;
  now.overflows = 0;
  const double larger = now.scale * rule.growth_factor;
  const double grown = larger < rule.max_scale ? larger : rule.max_scale;
  if (grown <= kLargestFloat) {
    now.scale = grown;
  }
}

}  // namespace binade::kernels
