#include <binade/optim/plateau.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace binade::optim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(const ScheduleTarget& target,
                                     const ReduceLROnPlateauOptions& options)
    : optimizer_(target.optimizer),
      options_(options),
      rates_{target.base_lr},
      best_(options.larger_is_better ? -kInfinity : kInfinity) {
  check(options.factor > 0 && options.factor < 1,
        "ReduceLROnPlateau: got factor = ", options.factor, ", expected a number between 0 and 1");
  check(options.patience >= 0 && options.cooldown >= 0,
        "ReduceLROnPlateau: got patience = ", options.patience, ", cooldown = ", options.cooldown,
        ", expected no negative number");
  check(options.min_lr >= 0, "ReduceLROnPlateau: got min_lr = ", options.min_lr,
        ", expected a number >= 0");
  read_rates();
}

void ReduceLROnPlateau::read_rates() {
  if (!optimizer_) {
    return;
  }
  rates_.clear();
  for (size_t i = 0; i < optimizer_->group_count(); ++i) {
    rates_.push_back(optimizer_->lr(i));
  }
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const double margin = options_.threshold;
  if (options_.larger_is_better) {
    return metric > (options_.relative ? best_ * (1 + margin) : best_ + margin);
  }
  return metric < (options_.relative ? best_ * (1 - margin) : best_ - margin);
}

void ReduceLROnPlateau::advance(double metric) {
  if (is_better(metric)) {
    best_ = metric;
    bad_looks_ = 0;
  } else {
    ++bad_looks_;
  }
  if (cooldown_ > 0) {
    --cooldown_;
    bad_looks_ = 0;
  }
  if (bad_looks_ <= options_.patience) {
    return;
  }
  cooldown_ = options_.cooldown;
  bad_looks_ = 0;
  read_rates();
  for (size_t i = 0; i < rates_.size(); ++i) {
    const double lowered = std::max(rates_[i] * options_.factor, options_.min_lr);
    if (rates_[i] - lowered > options_.eps) {
      rates_[i] = lowered;
      if (optimizer_) {
        optimizer_->set_lr(i, lowered);
      }
    }
  }
}

NamedScalars ReduceLROnPlateau::state_scalars() const {
  NamedScalars scalars{{"bad_looks", static_cast<double>(bad_looks_)},
                       {"cooldown", static_cast<double>(cooldown_)}};
  if (std::isfinite(best_)) {
    scalars["best"] = best_;
  }
  return scalars;
}

void ReduceLROnPlateau::load_state(const NamedScalars& scalars) {
  for (const char* name : {"bad_looks", "cooldown"}) {
    check(scalars.contains(name) && scalars.at(name) >= 0,
          "ReduceLROnPlateau: got a state without a count ", name);
  }
  bad_looks_ = static_cast<int64_t>(scalars.at("bad_looks"));
  cooldown_ = static_cast<int64_t>(scalars.at("cooldown"));
  const auto best = scalars.find("best");
  best_ = best != scalars.end() ? best->second : options_.larger_is_better ? -kInfinity : kInfinity;
  read_rates();
}

}  // namespace binade::optim
