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
  double min_scale = 0, max_scale = 0;
  AtFloor at_floor = AtFloor::error;
};

// True if the scale cannot decrease any more.
BINADE_HD inline bool scale_at_floor(const ScaleRule& rule, double scale) {
  return rule.backoff_factor == 1 || scale <= rule.min_scale;
}

// Updates the scale after a step. A finite step increments the count; at growth_interval the scale
// grows and the count restarts at 0. An overflow lowers the scale and resets the count. Growth
// stops at max_scale and never exceeds the largest float; the scale does not fall below min_scale.
template <class Count>
BINADE_HD inline void update_scale(const ScaleRule& rule, bool overflow, double& scale,
                                   Count& growth_tracker, Count& skipped_steps) {
  constexpr double kLargestFloat = 0x1.fffffep127;
  if (overflow) {
    const double fallen = scale * rule.backoff_factor;
    const double floor = scale < rule.min_scale ? scale : rule.min_scale;
    scale = fallen > floor ? fallen : floor;
    growth_tracker = 0;
    skipped_steps += 1;
    return;
  }
  growth_tracker += 1;
  if (growth_tracker < static_cast<Count>(rule.growth_interval)) {
    return;
  }
  growth_tracker = 0;
  const double larger = scale * rule.growth_factor;
  const double grown = larger < rule.max_scale ? larger : rule.max_scale;
  if (grown <= kLargestFloat) {
    scale = grown;
  }
}

}  // namespace binade::kernels
