// How a loss scale changes: one rule for the host and for the words of a device (step_rule.h), so
// that a scaler in host memory and one in device memory walk through the same scales.
#pragma once
#include <binade/kernels/base/host_device.h>

#include <cstdint>

namespace binade::kernels {

// What an overflow does when the scale can fall no further.
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

// Whether the scale can fall no further.
BINADE_HD inline bool scale_at_floor(const ScaleRule& rule, double scale) {
  return rule.backoff_factor == 1 || scale <= rule.min_scale;
}

// Takes note of a step: a finite one counts up, and at growth_interval the scale grows and the
// count returns to 0; an overflow backs the scale off and returns the count to 0. Growth beyond
// max_scale stops there, growth beyond the largest float does not happen; a scale does not fall
// below min_scale.
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
