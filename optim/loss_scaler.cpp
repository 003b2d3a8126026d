#include <binade/core/create.h>
#include <binade/optim/gradients.h>
#include <binade/optim/loss_scaler.h>

#include <cmath>
#include <set>

namespace binade::optim {

void ScaledLoss::backward() {
  const Tensor seed = full(loss_.sizes(), scale_ * weight_, loss_.dtype(), loss_.device());
  binade::backward(loss_, seed, {.scale = scale_});
}

LossScaler::LossScaler(const ScalerOptions& options) : state_(options) {}

LossScaler LossScaler::fixed(double scale, AtFloor on_overflow) {
  return LossScaler({.init_scale = scale,
                     .growth_factor = 1,
                     .backoff_factor = 1,
                     .min_scale = scale,
                     .max_scale = scale,
                     .power_of_two = false,
                     .at_floor = on_overflow});
}

ScaledLoss LossScaler::scale(const Tensor& loss, double weight) {
  check(loss.defined() && loss.numel() == 1 && is_floating(loss.dtype()), "loss scaler: got ",
        loss.defined() ? text("a loss of shape ", loss.sizes(), " and dtype ", loss.dtype())
                       : "an undefined loss",
        ", expected one floating element");
  check(std::isfinite(weight) && weight >= 0, "loss scaler: got weight = ", weight,
        ", expected a number >= 0");
  last_loss_ = loss.detach();
  return {loss, scale(), weight};
}

StepOutcome LossScaler::step(Optimizer& optimizer, const StepOptions& options) {
  if (options.accumulating) {
    return StepOutcome::accumulating;
  }
  const GradientSummary summary = optimizer.gradient_summary();
  if (summary.non_finite > 0) {
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
    const std::string cause = explain(optimizer);
    optimizer.zero_grad();
    fail(cause);
  }
  optimizer.zero_grad();
  state_.update(true);
  needs_full_precision_ |= policy == AtFloor::fp32;
  return StepOutcome::overflow;
}

std::string LossScaler::explain(const Optimizer& optimizer) const {
  const std::string what = text("loss scaler: the gradient of ", optimizer.first_non_finite(),
                                " is not finite at the smallest scale, ", scale(), ": ");
  std::set<double> scales;
  for (size_t i = 0; i < optimizer.group_count(); ++i) {
    for (const Parameter& parameter : optimizer.parameters(i)) {
      if (const Leaf* leaf = leaf_with_gradient(parameter)) {
        scales.insert(leaf->scale);
      }
    }
  }
  if (!last_loss_.defined() || scales.size() > 1) {
    return what +
           "stale gradients: some come from a backward without this scale; clear them with "
           "zero_grad, and go backward only from scaler.scale(loss)";
  }
  if (!std::isfinite(last_loss_.item())) {
    return what +
           "the loss itself is not finite: bad data (NaN in inputs or labels), a diverged model, "
           "or "
           "a forward pass beyond the range of its dtype; no scale helps";
  }
  if (scale() > 1) {
    return what +
           "the scale is too high for these gradients and may not fall: lower min_scale (for a "
           "fixed "
           "scale, the scale)";
  }
  return what +
         "the loss is finite, so the forward pass overflowed within a layer, or a backward divides "
         "by "
         "zero; run the step in fp32 to see which";
}

NamedScalars LossScaler::state_scalars() const {
  return {{"scale", scale()},
          {"growth_tracker", static_cast<double>(growth_tracker())},
          {"skipped_steps", static_cast<double>(skipped_steps())}};
}

void LossScaler::load_state(const NamedScalars& scalars) {
  for (const char* name : {"scale", "growth_tracker", "skipped_steps"}) {
    check(scalars.contains(name), "loss scaler: got a state without ", name);
  }
  state_.restore(scalars.at("scale"), static_cast<int64_t>(scalars.at("growth_tracker")),
                 static_cast<int64_t>(scalars.at("skipped_steps")));
}

}  // namespace binade::optim
