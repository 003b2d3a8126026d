#include <binade/core/device/graph.h>
#include <binade/core/observe/warning.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/optimizer/step_scalars.h>
#include <binade/optim/device_optimizer_internal.h>
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

Schedule::Schedule(const ScheduleTarget& target, Formula formula, Formula momentum)
    : optimizer_(target.optimizer),
      formula_(std::move(formula)),
      momentum_formula_(std::move(momentum)) {
  for (size_t i = 0; optimizer_ && i < optimizer_->group_count(); ++i) {
    base_.push_back(optimizer_->lr(i));
    base_momentum_.push_back(drives_momentum() ? optimizer_->momentum(i) : 0);
  }
  if (!optimizer_) {
    base_.push_back(target.base_lr);
    base_momentum_.push_back(0);
  }
  (void)rate(0);  // throws if the options are wrong
  set_rates();
}

double Schedule::momentum(int64_t step, size_t group) const {
  check(drives_momentum(), "schedule: this one does not drive the momentum");
  return momentum_formula_(base_momentum_.at(group), step);
}

void Schedule::set_rates() {
  for (size_t i = 0; optimizer_ && i < base_.size(); ++i) {
    optimizer_->set_lr(i, rate(step_, i));
    if (drives_momentum()) {
      optimizer_->set_momentum(i, momentum(step_, i));
    }
  }
}

void Schedule::advance(const StepResult& result) {
  if (optimizer_ && !optimizer_->device_ && step_ == 0 && optimizer_->step_count_ == 0 &&
      result == StepOutcome::applied) {
    warn(
        "schedule: got advance() before the first step of its optimizer, expected it after "
        "step(); the first rate was not used: write schedule.advance(optimizer.step())");
  }
  if (result.known() || !optimizer_) {
    if (result == StepOutcome::applied) {
      set_step(step() + 1);
    }
    return;
  }
  check(!is_capturing(optimizer_->device()),
        "schedule: got advance() while a graph is captured, expected it after each replay");
  if (!device_ || device_->steps + 1 == kRows) {
    start_on_device(step());
  }
  const auto groups = static_cast<int64_t>(base_.size());
  const Tensor rates =
      make_view(optimizer_->device_->rates, {groups, device_->table.size(2)}, {2, 1});
  kernels::schedule_step({.outcome = result.device_outcome(),
                          .step_scalars = device_->step_scalars,
                          .table = device_->table,
                          .rates = rates});
  optimizer_->device_->rates_moved = true;
  ++device_->steps;
}

void Schedule::start_on_device(int64_t position) {
  const auto groups = static_cast<int64_t>(base_.size());
  const int64_t k = drives_momentum() ? 2 : 1;
  std::vector<double> table;
  for (int64_t row = 0; row < kRows; ++row) {
    for (size_t i = 0; i < base_.size(); ++i) {
      table.push_back(rate(position + row, i));
      if (drives_momentum()) {
        table.push_back(momentum(position + row, i));
      }
    }
  }
  const auto at = static_cast<double>(position);
  const Device device = optimizer_->device();
  device_ = OnDevice{.step_scalars = make_device_scalars(kernels::ScheduleScalars{at, at}, device),
                     .table = from_values(table, {kRows, groups, k}, DType::f64, device),
                     .first = position};
}

int64_t Schedule::step() const {
  return device_
             ? static_cast<int64_t>(
                   read_device_scalars<kernels::ScheduleScalars>(device_->step_scalars).position)
             : step_;
}

void Schedule::set_step(int64_t step) {
  check(step >= 0, "schedule: got step ", step, ", expected at least 0");
  device_.reset();
  step_ = step;
  set_rates();
}

void Schedule::set_scale(double scale) {
  check(std::isfinite(scale) && scale >= 0, "schedule: got scale ", scale,
        ", expected a number >= 0");
  scale_ = scale;
  set_step(step());
}

Constant::Constant(const ScheduleTarget& target)
    : Schedule(target, [](double b, int64_t) { return b; }) {}

StepLR::StepLR(const ScheduleTarget& target, const StepLROptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        check_positive("StepLR", "step_size", o.step_size);
        const int64_t falls = t / o.step_size;
        return b * std::pow(o.gamma, static_cast<double>(falls));
      }) {}

MultiStepLR::MultiStepLR(const ScheduleTarget& target, const MultiStepLROptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        const auto passed = std::count_if(o.milestones.begin(), o.milestones.end(),
                                          [t](int64_t milestone) { return milestone <= t; });
        return b * std::pow(o.gamma, static_cast<double>(passed));
      }) {}

ExponentialLR::ExponentialLR(const ScheduleTarget& target, const ExponentialLROptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        return b * std::pow(o.gamma, static_cast<double>(t));
      }) {}

CosineAnnealingLR::CosineAnnealingLR(const ScheduleTarget& target,
                                     const CosineAnnealingLROptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        check_positive("CosineAnnealingLR", "t_max", o.t_max);
        return o.eta_min + (b - o.eta_min) * cosine_fall(ratio(t % (2 * o.t_max), o.t_max));
      }) {}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(
    const ScheduleTarget& target, const CosineAnnealingWarmRestartsOptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        check_positive("CosineAnnealingWarmRestarts", "t_0", o.t_0);
        check_positive("CosineAnnealingWarmRestarts", "t_mult", o.t_mult);
        return o.eta_min + (b - o.eta_min) * cosine_fall(warm_restart_position(t, o.t_0, o.t_mult));
      }) {}

LinearLR::LinearLR(const ScheduleTarget& target, const LinearLROptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        check_positive("LinearLR", "total_iters", o.total_iters);
        const double q = ratio(std::min(t, o.total_iters), o.total_iters);
        return b * (o.start_factor + (o.end_factor - o.start_factor) * q);
      }) {}

PolynomialLR::PolynomialLR(const ScheduleTarget& target, const PolynomialLROptions& options)
    : Schedule(target, [o = options](double b, int64_t t) {
        check_positive("PolynomialLR", "total_iters", o.total_iters);
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

namespace {

// Phases of a cycle: from the end of the last one to `end`, between two values each.
struct Phase {
  double end, from, to, momentum_from, momentum_to;
};

std::vector<Phase> phases_of(const OneCycleLROptions& o) {
  check(o.total_steps >= 1 && o.pct_start >= 0 && o.pct_start <= 1 && o.div_factor > 0 &&
            o.final_div_factor > 0,
        "OneCycleLR: got total_steps = ", o.total_steps, ", pct_start = ", o.pct_start,
        ", div_factor = ", o.div_factor, ", final_div_factor = ", o.final_div_factor,
        ", expected at least 1 step, a share in [0, 1] and positive factors");
  const double initial = o.max_lr / o.div_factor, last = initial / o.final_div_factor;
  const double total = static_cast<double>(o.total_steps), up = o.pct_start * total;
  const double low = o.base_momentum, high = o.max_momentum;
  if (o.three_phase) {
    return {{up - 1, initial, o.max_lr, high, low},
            {2 * up - 2, o.max_lr, initial, low, high},
            {total - 1, initial, last, high, high}};
  }
  return {{up - 1, initial, o.max_lr, high, low}, {total - 1, o.max_lr, last, low, high}};
}

// The value of a cycle at step t, of rates or momenta.
double cycle_value(const OneCycleLROptions& o, int64_t t, double Phase::*from, double Phase::*to) {
  const double at = std::min(static_cast<double>(t), static_cast<double>(o.total_steps - 1));
  double start = 0;
  const std::vector<Phase> phases = phases_of(o);
  for (const Phase& phase : phases) {
    if (at <= phase.end || &phase == &phases.back()) {
      const double q = phase.end > start ? (at - start) / (phase.end - start) : 1;
      const double a = phase.*from, b = phase.*to;
      const double rest = o.cosine ? cosine_fall(q) : 1 - q;  // exact at both ends
      return a * rest + b * (1 - rest);
    }
    start = phase.end;
  }
  return phases.back().*to;
}

const ScheduleTarget& with_momentum(const ScheduleTarget& target, const OneCycleLROptions& o) {
  check(!target.optimizer || !o.cycle_momentum || target.optimizer->has_momentum(),
        "OneCycleLR: got an optimizer without momentum, expected one with it; set momentum in its "
        "options, or cycle_momentum = false");
  return target;
}

}  // namespace

OneCycleLR::OneCycleLR(const ScheduleTarget& target, const OneCycleLROptions& options)
    : Schedule(
          with_momentum(target, options),
          [o = options](double, int64_t t) { return cycle_value(o, t, &Phase::from, &Phase::to); },
          options.cycle_momentum ? Formula([o = options](double, int64_t t) {
            return cycle_value(o, t, &Phase::momentum_from, &Phase::momentum_to);
          })
                                 : Formula()) {}

}  // namespace binade::optim
