#include <binade/kernels/base/error.h>
#include <binade/optim/scaler_state.h>

#include <cmath>
#include <limits>

namespace binade::optim {
namespace {

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5;
}

bool is_float(double value) { return value <= std::numeric_limits<float>::max(); }

}  // namespace

LossScalerOptions fixed_scale(double scale, AtFloor on_overflow) {
  return {.init_scale = scale,
          .growth_factor = 1,
          .backoff_factor = 1,
          .min_scale = scale,
          .max_scale = scale,
          .power_of_two = false,
          .at_floor = on_overflow};
}

ScalerState::ScalerState(const LossScalerOptions& options)
    : options_(options), scale_(options.init_scale) {
  const auto& o = options_;
  check(std::isfinite(o.init_scale) && o.init_scale > 0 && is_float(o.init_scale),
        "loss scaler: got init_scale = ", o.init_scale, ", expected a positive float");
  check(o.growth_factor >= 1 && std::isfinite(o.growth_factor) && o.backoff_factor > 0 &&
            o.backoff_factor <= 1,
        "loss scaler: got growth_factor = ", o.growth_factor,
        ", backoff_factor = ", o.backoff_factor,
        ", expected growth of at least 1 and backoff in (0, 1]");
  check(o.growth_interval >= 1, "loss scaler: got growth_interval = ", o.growth_interval,
        ", expected at least 1");
  check(o.hysteresis >= 1, "loss scaler: got hysteresis = ", o.hysteresis,
        ", expected at least 1 overflow before the scale falls");
  check(o.min_scale >= 0 && o.min_scale <= o.init_scale && o.init_scale <= o.max_scale,
        "loss scaler: got init_scale = ", o.init_scale, " with limits ", o.min_scale, " and ",
        o.max_scale, ", expected it between them");
  check(!o.power_of_two || (is_power_of_two(o.init_scale) && is_power_of_two(o.growth_factor) &&
                            is_power_of_two(o.backoff_factor)),
        "loss scaler: got init_scale = ", o.init_scale, ", growth_factor = ", o.growth_factor,
        ", backoff_factor = ", o.backoff_factor,
        ", expected powers of two, which scale exactly; or set power_of_two = false");
}

kernels::ScaleRule ScalerState::rule() const {
  return {.growth_factor = options_.growth_factor,
          .backoff_factor = options_.backoff_factor,
          .growth_interval = options_.growth_interval,
          .hysteresis = options_.hysteresis,
          .min_scale = options_.min_scale,
          .max_scale = options_.max_scale,
          .at_floor = options_.at_floor};
}

void ScalerState::restore(double scale, int64_t growth_tracker, int64_t skipped_steps,
                          int64_t overflows) {
  check(std::isfinite(scale) && scale > 0 && growth_tracker >= 0 && skipped_steps >= 0 &&
            overflows >= 0,
        "loss scaler: got scale = ", scale, ", growth_tracker = ", growth_tracker,
        ", skipped_steps = ", skipped_steps, " to restore, expected a positive scale and counts");
  scale_ = scale;
  growth_tracker_ = growth_tracker;
  skipped_steps_ = skipped_steps;
  overflows_ = overflows;
}

}  // namespace binade::optim
