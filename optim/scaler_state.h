// The state machine of LossScaler, on plain numbers.
//
// A finite step counts up; at growth_interval the scale grows and the count returns to 0. An
// overflow backs the scale off and returns the count to 0. A scale that is a power of two makes
// scaling and unscaling exact; it may fall below 1, for losses beyond the range of f16.
#pragma once
#include <binade/kernels/optimizer/scale_rule.h>

#include <cstdint>

namespace binade::optim {

using kernels::AtFloor;

struct LossScalerOptions {
  double init_scale = 0x1p16;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;  // finite steps in a row
  // How many overflows since the last growth it takes until the scale falls: with 2, a single bad
  // batch loses its step but does not lower the scale.
  int64_t hysteresis = 1;
  double min_scale = 0x1p-24;
  double max_scale = 0x1p24;
  bool power_of_two = true;  // insist that scale and factors are powers of two
  AtFloor at_floor = AtFloor::error;
};

// Options of a scale that never changes (LossScaler::fixed).
LossScalerOptions fixed_scale(double scale, AtFloor on_overflow = AtFloor::skip);

class ScalerState {
 public:
  explicit ScalerState(const LossScalerOptions& options);  // throws on invalid settings

  // Counts a step. The scale grows at most to max_scale and never beyond the largest float; it does
  // not fall below min_scale.
  void update(bool overflow) {
    kernels::update_scale<int64_t>(rule(), overflow,
                                   {scale_, growth_tracker_, skipped_steps_, overflows_});
  }
  void clipped() { growth_tracker_ = 0; }  // an overflow at the floor that was clipped and applied
  // True if the scale cannot fall any further.
  bool at_floor() const { return kernels::scale_at_floor(rule(), scale_); }
  kernels::ScaleRule rule() const;

  double scale() const { return scale_; }
  int64_t growth_tracker() const { return growth_tracker_; }
  int64_t skipped_steps() const { return skipped_steps_; }
  int64_t overflows() const { return overflows_; }  // since the last growth
  const LossScalerOptions& options() const { return options_; }
  void set_at_floor(AtFloor policy) { options_.at_floor = policy; }
  void restore(double scale, int64_t growth_tracker, int64_t skipped_steps, int64_t overflows);

 private:
  LossScalerOptions options_;
  double scale_;
  int64_t growth_tracker_ = 0;
  int64_t skipped_steps_ = 0;
  int64_t overflows_ = 0;
};

}  // namespace binade::optim
