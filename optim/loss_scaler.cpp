#include <binade/core/observe/timeline.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/optimizer/step_scalars.h>
#include <binade/optim/device_scalars_internal.h>
#include <binade/optim/gradients_internal.h>
#include <binade/optim/loss_scaler.h>

#include <cmath>
#include <set>

namespace binade::optim {

void ScaledLoss::backward() {
  if (!device_) {
    const Tensor seed = full(loss_.sizes(), scale_ * weight_, loss_.dtype());
    binade::backward(loss_, seed, {.scale = scale_});
    return;
  }
  const Tensor& tag = device_->tag_for_backward();
  const Tensor seed = empty_like(loss_);
  kernels::loss_seed({.loss = loss_,
                      .scaler = device_->step_scalars,
                      .tag = tag,
                      .seed = seed,
                      .weight = weight_});
  binade::backward(loss_, seed, {.device_scale = tag});
}

LossScaler::LossScaler(const LossScalerOptions& options) : state_(options) {}

LossScaler LossScaler::fixed(double scale, AtFloor on_overflow) {
  return LossScaler(fixed_scale(scale, on_overflow));
}

ScaledLoss LossScaler::scale(const Tensor& loss, double weight) {
  check(loss.defined() && loss.numel() == 1 && is_floating(loss.dtype()), "loss scaler: got ",
        loss.defined() ? text("a loss of shape ", loss.sizes(), " and dtype ", loss.dtype())
                       : "an undefined loss",
        ", expected one floating element; reduce it with mean() or sum()");
  check(std::isfinite(weight) && weight >= 0, "loss scaler: got weight = ", weight,
        ", expected a number >= 0");
  to(loss.device());
  if (device_) {
    return {loss, 1, weight, device_};
  }
  last_loss_ = loss.detach();
  return {loss, state_.scale(), weight};
}

StepResult LossScaler::step(Optimizer& optimizer, const StepOptions& options) {
  if (options.accumulating) {
    return StepOutcome::accumulating;
  }
  const PhaseSpan phase("optimizer");
  to(optimizer.device());
  if (device_) {
    return optimizer.step_on_device(options, device_);
  }
  return step_on_host(optimizer, options);
}

StepOutcome LossScaler::step_on_host(Optimizer& optimizer, const StepOptions& options) {
  const GradientSummary summary = optimizer.gradient_summary();
  if (summary.non_finite > 0) {
    last_overflow_ = optimizer.first_non_finite();
    if (state_.at_floor()) {
      return overflow_at_floor(optimizer, options);
    }
    optimizer.zero_grad();
    state_.update(true);
    return StepOutcome::overflow;
  }
  const StepOutcome outcome = optimizer.step(options, &summary);
  state_.update(false);
  return outcome;
}

StepOutcome LossScaler::overflow_at_floor(Optimizer& optimizer, const StepOptions& options) {
  const AtFloor policy = state_.options().at_floor;
  if (policy == AtFloor::clip) {
    for (size_t i = 0; i < optimizer.group_count(); ++i) {
      replace_non_finite(optimizer.parameters(i));
    }
    const StepOutcome outcome = optimizer.step(options);
    state_.clipped();
    return outcome;
  }
  if (policy == AtFloor::error) {
    const std::string cause = explain(floor_error(optimizer));
    optimizer.zero_grad();
    throw OverflowAtFloor(cause, 0);
  }
  optimizer.zero_grad();
  state_.update(true);
  needs_full_precision_ |= policy == AtFloor::fp32;
  return StepOutcome::overflow;
}

FloorError LossScaler::floor_error(const Optimizer& optimizer) const {
  std::set<double> scales;
  for (size_t i = 0; i < optimizer.group_count(); ++i) {
    for (const Parameter& parameter : optimizer.parameters(i)) {
      if (const Leaf* leaf = leaf_with_gradient(parameter)) {
        scales.insert(leaf->full_scale());
      }
    }
  }
  return {.parameter = last_overflow_,
          .scale = state_.scale(),
          .stale = !last_loss_.defined() || scales.size() > 1,
          .loss = last_loss_.defined() ? last_loss_.item() : 0};
}

kernels::ScalerScalars LossScaler::step_scalars() const {
  return device_ ? read_device_scalars<kernels::ScalerScalars>(device_->step_scalars)
                 : kernels::ScalerScalars{
                       .scale = state_.scale(),
                       .growth_tracker = static_cast<double>(state_.growth_tracker()),
                       .skipped_steps = static_cast<double>(state_.skipped_steps()),
                       .needs_full_precision = needs_full_precision_ ? 1.0 : 0.0,
                       .overflows = static_cast<double>(state_.overflows())};
}

void LossScaler::to(Device device) {
  if ((device_ ? device_->device : Device{}) == device) {
    return;
  }
  const kernels::ScalerScalars now = step_scalars();
  if (device_) {
    device_->throw_if_halted();
    state_.restore(now.scale, static_cast<int64_t>(now.growth_tracker),
                   static_cast<int64_t>(now.skipped_steps), static_cast<int64_t>(now.overflows));
    needs_full_precision_ = now.needs_full_precision != 0;
    last_overflow_ = last_overflow();
    device_ = nullptr;
  }
  if (!device.is_cpu()) {
    device_ = std::make_shared<DeviceScaler>(device, state_.rule(), step_scalars());
  }
}

double LossScaler::scale() const { return step_scalars().scale; }
int64_t LossScaler::growth_tracker() const {
  return static_cast<int64_t>(step_scalars().growth_tracker);
}
int64_t LossScaler::skipped_steps() const {
  return static_cast<int64_t>(step_scalars().skipped_steps);
}
bool LossScaler::needs_full_precision() const { return step_scalars().needs_full_precision != 0; }

std::string LossScaler::last_overflow() const {
  const double position = device_ ? step_scalars().overflow_position : -1;
  return position < 0 ? last_overflow_ : device_->parameter_at(position);
}

Tensor LossScaler::device_numbers() const {
  const UnobservedGuard unobserved;
  return device_ ? device_->step_scalars.clone() : Tensor();
}

ScalerReading LossScaler::read(const Tensor& numbers) const {
  const auto now = read_device_scalars<kernels::ScalerScalars>(numbers);
  return {.scale = now.scale,
          .skipped_steps = static_cast<int64_t>(now.skipped_steps),
          .last_overflow = now.overflow_position < 0 || !device_
                               ? last_overflow_
                               : device_->parameter_at(now.overflow_position)};
}

void LossScaler::set_at_floor(AtFloor policy) {
  state_.set_at_floor(policy);
  if (device_) {
    device_->rule.at_floor = policy;
  }
}

NamedScalars LossScaler::state_scalars() const {
  if (device_) {
    device_->throw_if_halted();
  }
  const kernels::ScalerScalars now = step_scalars();
  return {{"scale", now.scale},
          {"growth_tracker", now.growth_tracker},
          {"skipped_steps", now.skipped_steps},
          {"overflows", now.overflows},
          {"needs_full_precision", now.needs_full_precision}};
}

void LossScaler::load_state(const NamedScalars& scalars) {
  for (const char* name : {"scale", "growth_tracker", "skipped_steps"}) {
    check(scalars.contains(name), "loss scaler: got a state without ", name);
  }
  const auto full = scalars.find("needs_full_precision");  // not in files of earlier versions
  needs_full_precision_ = full != scalars.end() && full->second != 0;
  const auto overflows = scalars.find("overflows");  // likewise
  device_ = nullptr;
  state_.restore(scalars.at("scale"), static_cast<int64_t>(scalars.at("growth_tracker")),
                 static_cast<int64_t>(scalars.at("skipped_steps")),
                 overflows == scalars.end() ? 0 : static_cast<int64_t>(overflows->second));
}

}  // namespace binade::optim
