#include <binade/optim/line_search_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace binade::optim {
namespace {

// The minimum of the cubic polynomial through two losses and slopes, within [low, high]; the middle
// if there is none.
double cubic_minimum(const Trial& a, const Trial& b, double low, double high) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) {
    return (low + high) / 2;
  }
  const double d2 = std::sqrt(square);
  const double t = a.t <= b.t
                       ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
                       : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return std::isnan(t) ? (low + high) / 2 : std::clamp(t, low, high);
}

// Keeps a trial a tenth of the bracket away from its ends, if it comes near them twice in a row.
double inside_bracket(double t, double low, double high, bool& near_before) {
  const double margin = 0.1 * (high - low);
  if (std::min(high - t, t - low) >= margin) {
    near_before = false;
    return t;
  }
  if (near_before || t >= high || t <= low) {
    near_before = false;
    return std::abs(t - high) < std::abs(t - low) ? high - margin : low + margin;
  }
  near_before = true;
  return t;
}

// Zooms in on a minimum between two trials. Of the bracket, [low] has the smaller loss.
Trial zoom_in(std::array<Trial, 2> bracket, const std::function<Trial(double)>& at,
              const std::function<bool(const Trial&)>& too_high,
              const std::function<bool(const Trial&)>& is_flat, double least_width,
              int64_t max_trials) {
  size_t low = bracket[0].loss <= bracket[1].loss ? 0 : 1;
  bool near_before = false, done = false;
  for (int64_t i = 0; !done && i < max_trials; ++i) {
    if (std::abs(bracket[1].t - bracket[0].t) < least_width) {
      break;
    }
    const double left = std::min(bracket[0].t, bracket[1].t),
                 right = std::max(bracket[0].t, bracket[1].t);
    const double t = cubic_minimum(bracket[0], bracket[1], left, right);
    const Trial trial = at(inside_bracket(t, left, right, near_before));
    if (too_high(trial) || trial.loss >= bracket[low].loss) {
      bracket[1 - low] = trial;
      low = bracket[0].loss <= bracket[1].loss ? 0 : 1;
    } else {
      done = is_flat(trial);
      if (!done && trial.slope * (bracket[1 - low].t - bracket[low].t) >= 0) {
        bracket[1 - low] = bracket[low];
      }
      bracket[low] = trial;
    }
  }
  return bracket[low];
}

}  // namespace

WolfeResult strong_wolfe(const std::function<Trial(double)>& evaluate, const Trial& start,
                         const WolfeOptions& options) {
  int64_t evaluations = 0;
  const auto at = [&](double t) {
    ++evaluations;
    Trial trial = evaluate(t);
    if (!std::isfinite(trial.loss) || !std::isfinite(trial.slope)) {
      trial.loss = std::numeric_limits<double>::infinity();
    }
    return trial;
  };
  const auto too_high = [&](const Trial& trial) {
    return trial.loss > start.loss + options.armijo * trial.t * start.slope;
  };
  const auto is_flat = [&](const Trial& trial) {
    return std::abs(trial.slope) <= -options.curvature * start.slope;
  };
  // Widens the step until a minimum is between two trials.
  Trial before = start, now = at(options.t);
  int64_t trials = 0;
  bool found = false;
  while (trials < options.max_trials && !found) {
    found = too_high(now) || (trials > 1 && now.loss >= before.loss);
    if (!found && is_flat(now)) {
      return {now, evaluations};
    }
    found = found || now.slope >= 0;
    if (!found) {
      const double t = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
      before = std::exchange(now, at(t));
      ++trials;
    }
  }
  Trial best = zoom_in({found ? before : start, now}, at, too_high, is_flat,
                       options.tolerance_change / options.direction, options.max_trials - trials);
  return {std::move(best), evaluations};
}

}  // namespace binade::optim
