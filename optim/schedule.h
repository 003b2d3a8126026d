// Learning rate schedules: closed formulas in t, the number of applied steps, and b, the rate that
// the optimizer had at construction (per group). Creating one sets the rate of step 0. The schedule
// that follows a metric is in optim/plateau.h.
//
// If only the device knows the outcome of a step, the device takes the next rates from a table. The
// host waits only once per kRows steps, to read the position.
//
//   optim::WarmupCosine schedule(adam, {.warmup = 500, .total = 50'000});
//   schedule.advance(scaler.step(adam));           // a skipped step does not advance the schedule
#pragma once
#include <binade/optim/optimizer.h>

namespace binade::optim {

// The target of a schedule: an optimizer, or only a base rate, to look at the curve.
struct ScheduleTarget {
  Optimizer* optimizer = nullptr;
  double base_lr = 0;
  ScheduleTarget(Optimizer& optimizer) : optimizer(&optimizer) {}  // NOLINT
  ScheduleTarget(double base_lr) : base_lr(base_lr) {}             // NOLINT
};

class Schedule {
 public:
  using Formula = std::function<double(double base_lr, int64_t step)>;
  // momentum(base momentum, step): also drives the optimizer's momentum.
  Schedule(const ScheduleTarget& target, Formula formula, Formula momentum = nullptr);
  Schedule(Schedule&&) = default;
  Schedule& operator=(Schedule&&) = default;

  // The rate that step `step` uses, counted from 0.
  double rate(int64_t step, size_t group = 0) const {
    return scale_ * formula_(base_.at(group), step);
  }
  double base_lr(size_t group = 0) const { return base_.at(group); }  // that it was made with
  // The momentum at a step, for a schedule that drives it.
  double momentum(int64_t step, size_t group = 0) const;
  bool drives_momentum() const { return momentum_formula_ != nullptr; }
  // True if it sets the rates of this optimizer.
  bool follows(const Optimizer& optimizer) const { return optimizer_ == &optimizer; }
  // Call it after an optimizer step: if the step was applied, it sets the rate of the next one. Do
  // not call it in a captured graph; call it after each replay.
  void advance(const StepResult& result);
  int64_t step() const;         // waits for the device if only that knows it
  void set_step(int64_t step);  // for resume: sets the rates too
  // Multiplies all rates by `scale` from now on (1 at first); sets the rate of this step, too.
  void set_scale(double scale);

 private:
  static constexpr int64_t kRows = 1024;
  struct OnDevice {
    Tensor step_scalars, table;  // ScheduleScalars; f64 [kRows, groups, 1 or 2]
    int64_t first;               // position of the first row
    int64_t steps = 0;           // since then: how far the position may have moved
  };
  void set_rates();
  void start_on_device(int64_t position);

  Optimizer* optimizer_;
  std::vector<double> base_, base_momentum_;  // per group
  Formula formula_, momentum_formula_;
  int64_t step_ = 0;
  double scale_ = 1;
  std::optional<OnDevice> device_;  // while the position is there
};

struct Constant : Schedule {
  explicit Constant(const ScheduleTarget& target);
};

// b gamma^floor(t / step_size)
struct StepLROptions {
  int64_t step_size;
  double gamma = 0.1;
};
struct StepLR : Schedule {
  StepLR(const ScheduleTarget& target, const StepLROptions& options);
};

// b gamma^(number of milestones <= t)
struct MultiStepLROptions {
  std::vector<int64_t> milestones;
  double gamma = 0.1;
};
struct MultiStepLR : Schedule {
  MultiStepLR(const ScheduleTarget& target, const MultiStepLROptions& options);
};

// b gamma^t
struct ExponentialLROptions {
  double gamma;
};
struct ExponentialLR : Schedule {
  ExponentialLR(const ScheduleTarget& target, const ExponentialLROptions& options);
};

// eta_min + (b - eta_min) (1 + cos(pi t / t_max)) / 2; rises again after t_max
struct CosineAnnealingLROptions {
  int64_t t_max;
  double eta_min = 0;
};
struct CosineAnnealingLR : Schedule {
  CosineAnnealingLR(const ScheduleTarget& target, const CosineAnnealingLROptions& options);
};

// The falling half of the cosine with period t_0, restarted; each period is t_mult times the last
struct CosineAnnealingWarmRestartsOptions {
  int64_t t_0;
  int64_t t_mult = 1;
  double eta_min = 0;
};
struct CosineAnnealingWarmRestarts : Schedule {
  CosineAnnealingWarmRestarts(const ScheduleTarget& target,
                              const CosineAnnealingWarmRestartsOptions& options);
};

// b (start_factor + (end_factor - start_factor) min(t, total_iters) / total_iters)
struct LinearLROptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  int64_t total_iters = 5;
};
struct LinearLR : Schedule {
  LinearLR(const ScheduleTarget& target, const LinearLROptions& options);
};

// b (1 - min(t, total_iters) / total_iters)^power
struct PolynomialLROptions {
  int64_t total_iters = 5;
  double power = 1;
};
struct PolynomialLR : Schedule {
  PolynomialLR(const ScheduleTarget& target, const PolynomialLROptions& options);
};

// b (t + 1) / warmup for t < warmup, then b (min_ratio + (1 - min_ratio) (1 + cos(pi q)) / 2) with
// q = min(1, (t - warmup) / (total - warmup))
struct WarmupCosineOptions {
  int64_t warmup = 0;
  int64_t total;
  double min_ratio = 0;
};
struct WarmupCosine : Schedule {
  WarmupCosine(const ScheduleTarget& target, const WarmupCosineOptions& options);
};

// One cycle (Smith and Topin, 2018), independent of b: from max_lr / div_factor up to max_lr at
// step pct_start total_steps - 1, then down to max_lr / div_factor / final_div_factor at step
// total_steps - 1, with three_phase by way of max_lr / div_factor at step 2 pct_start total_steps -
// 2. After that it stays. The momentum (beta1 of Adam) falls from max_momentum to base_momentum in
// the first phase and rises back in the second.
struct OneCycleLROptions {
  double max_lr;
  int64_t total_steps;
  double pct_start = 0.3;
  bool cosine = true;  // else linear
  bool cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95;
  double div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;
};
struct OneCycleLR : Schedule {
  OneCycleLR(const ScheduleTarget& target, const OneCycleLROptions& options);
};

}  // namespace binade::optim
