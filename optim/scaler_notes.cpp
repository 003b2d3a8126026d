#include <binade/kernels/base/error.h>
#include <binade/optim/scaler_notes.h>

#include <algorithm>
#include <cmath>

namespace binade::optim {

int64_t ScalerNotes::expected(int64_t steps, int64_t skipped) const {
  if (options_.backoff_factor == 1) {  // a fixed scale should not overflow
    return 0;
  }
  const double calibration = std::log(options_.init_scale) / -std::log(options_.backoff_factor);
  const int64_t growths =
      options_.growth_factor > 1 ? (steps - skipped) / options_.growth_interval : 0;
  return std::max<int64_t>(static_cast<int64_t>(std::ceil(calibration)), 1) + growths;
}

ScalerNote ScalerNotes::look(int64_t steps, int64_t skipped, double scale) {
  if (skipped == 0) {
    return {};
  }
  const int64_t normal = expected(steps, skipped);
  if (skipped > normal && skipped >= 2 * warned_at_) {
    warned_at_ = skipped;
    calm_said_ = true;
    return {true,
            text("loss scale: ", skipped, " of ", steps, " steps were skipped, more than the ",
                 normal, " that calibration and growth explain; the scale is ", scale,
                 options_.backoff_factor == 1
                     ? ". A fixed scale that overflows is too high: lower it"
                     : ". Gradients overflow at any scale: look for bad data, a learning rate that "
                       "is too high, or an op that overflows (AnomalyGuard names it)")};
  }
  if (calm_said_ || skipped > normal) {
    return {};
  }
  calm_said_ = true;
  return {false, text("loss scale: calibrating, ", options_.init_scale, " -> ", scale, " after ",
                      skipped, skipped == 1 ? " skipped step" : " skipped steps", "; normal")};
}

}  // namespace binade::optim
