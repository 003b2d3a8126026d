#include <binade/optim/schedule.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace binade::optim {
namespace {

using std::numbers::pi;

// From 1 at q = 0 to 0 at q = 1, along half a cosine.
double cosine_fall(double q) { return (1 + std::cos(pi * q)) / 2; }

double ratio(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

void check_positive(const char* schedule, const char* what, int64_t value) {
  check(value >= 1, schedule, ": got ", what, " = ", value, ", expected at least 1");
}

// The position of t in a sequence of periods t_0, t_0 m, t_0 m^2, ...: 0 at each start.
double warm_restart_position(int64_t t, int64_t t_0, int64_t t_mult) {
  int64_t period = t_0;
  if (t_mult == 1) {
    return ratio(t % period, period);
  }
  while (t >= period) {
    t -= period;
    period *= t_mult;
  }
  return ratio(t, period);
}

}  // namespace

Schedule::Schedule(const ScheduleTarget& target, Formula formula)
    : optimizer_(target.optimizer), formula_(std::move(formula)) {
  if (optimizer_) {
    for (size_t i = 0; i < optimizer_->group_count(); ++i) {
      base_.push_back(optimizer_->lr(i));
    }
  } else {
    base_.push_back(target.base_lr);
  }
  (void)rate(0);  // an error in the options shows here
  set_rates();
}

void Schedule::set_rates() {
  for (size_t i = 0; optimizer_ && i < base_.size(); ++i) {
    optimizer_->set_lr(i, rate(step_, i));
  }
}

void Schedule::advance(const StepResult& result) {
  if (result == StepOutcome::applied) {
    ++step_;
    set_rates();
  }
}

void Schedule::set_step(int64_t step) {
  check(step >= 0, "schedule: got step ", step, ", expected at least 0");
  step_ = step;
  set_rates();
}

Constant::Constant(const ScheduleTarget& target)
    : Schedule(target, [](double b, int64_t) { return b; }) {}

StepLr::StepLr(const ScheduleTarget& target, const StepLrOptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        check_positive("StepLr", "step_size", o.step_size);
        return b * std::pow(o.gamma, static_cast<double>(t / o.step_size));
      }) {}

MultiStepLr::MultiStepLr(const ScheduleTarget& target, const MultiStepLrOptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        const auto passed = std::count_if(o.milestones.begin(), o.milestones.end(),
                                          [t](int64_t milestone) { return milestone <= t; });
        return b * std::pow(o.gamma, static_cast<double>(passed));
      }) {}

ExponentialLr::ExponentialLr(const ScheduleTarget& target, const ExponentialLrOptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        return b * std::pow(o.gamma, static_cast<double>(t));
      }) {}

CosineAnnealing::CosineAnnealing(const ScheduleTarget& target,
                                 const CosineAnnealingOptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        check_positive("CosineAnnealing", "t_max", o.t_max);
        return o.eta_min + (b - o.eta_min) * cosine_fall(ratio(t % (2 * o.t_max), o.t_max));
      }) {}

CosineWarmRestarts::CosineWarmRestarts(const ScheduleTarget& target,
                                       const CosineWarmRestartsOptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        check_positive("CosineWarmRestarts", "t_0", o.t_0);
        check_positive("CosineWarmRestarts", "t_mult", o.t_mult);
        return o.eta_min + (b - o.eta_min) * cosine_fall(warm_restart_position(t, o.t_0, o.t_mult));
      }) {}

LinearLr::LinearLr(const ScheduleTarget& target, const LinearLrOptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        check_positive("LinearLr", "total_iters", o.total_iters);
        const double q = ratio(std::min(t, o.total_iters), o.total_iters);
        return b * (o.start_factor + (o.end_factor - o.start_factor) * q);
      }) {}

PolynomialLr::PolynomialLr(const ScheduleTarget& target, const PolynomialLrOptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        check_positive("PolynomialLr", "total_iters", o.total_iters);
        return b * std::pow(1 - ratio(std::min(t, o.total_iters), o.total_iters), o.power);
      }) {}

WarmupCosine::WarmupCosine(const ScheduleTarget& target, const WarmupCosineOptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        check(o.warmup >= 0 && o.total >= o.warmup, "WarmupCosine: got warmup = ", o.warmup,
              ", total = ", o.total, ", expected 0 <= warmup <= total");
        if (t < o.warmup) {
          return b * ratio(t + 1, o.warmup);
        }
        const double q =
            o.total > o.warmup ? std::min(1.0, ratio(t - o.warmup, o.total - o.warmup)) : 1;
        return b * (o.min_ratio + (1 - o.min_ratio) * cosine_fall(q));
      }) {}

}  // namespace binade::optim
