#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/train/bad_loss_internal.h>
#include <binade/train/divergence_internal.h>
#include <binade/train/run_checkpoints_internal.h>
#include <binade/train/scaler_watch_internal.h>

#include <cmath>

namespace binade::train {
namespace {

constexpr const char* kFiniteModel =
    "the model is finite, so an op of the step made it: an AnomalyGuard in the step names it";

// Equal to the loss, but its gradient is NaN if the loss is not finite.
Tensor with_its_gradient(const Tensor& loss) {
  return loss * (loss.detach() * 0.0 + 1);  // infinity times 0 is NaN
}

}  // namespace

void scale_rates(const TrainingParts& parts, RunState& state, double scale) {
  if (parts.schedule) {
    parts.schedule->set_scale(scale);
  } else {
    for (size_t i = 0; i < parts.optimizer.group_count(); ++i) {
      parts.optimizer.set_lr(i, parts.optimizer.lr(i) * scale / state.rate_scale);
    }
  }
  state.rate_scale = scale;
}

void DivergenceWatch::begin_epoch(const RunState& state) {
  if (ignores()) {
    return;
  }
  steps_before_ = state.steps;
  skipped_before_ = skipped_ = state.skipped(parts_.optimizer);
  buffers_.clear();
  for (const auto& [name, tensor] : parts_.model.named_buffers()) {
    if ((skips() || parts_.scaler) && is_floating(tensor.dtype())) {
      buffers_.emplace_back(name, tensor.detach());
    }
  }
  keep_buffers();
}

void DivergenceWatch::keep_buffers() {
  if (kept_.size() != buffers_.size()) {
    kept_ = copies(buffers_);
    return;
  }
  const NoGradGuard guard;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    kept_[i].second.copy_(buffers_[i].second);
  }
}

// A batch that was skipped may have left running statistics that are not finite.
void DivergenceWatch::restore_buffers() const {
  const NoGradGuard guard;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (!is_finite(buffers_[i].second)) {
      Tensor(buffers_[i].second).copy_(kept_[i].second);
    }
  }
}

void DivergenceWatch::begin_step() {
  if (on_cpu()) {
    keep_buffers();
  }
}

std::string DivergenceWatch::explain(const Tensor& loss, const data::Batch& batch,
                                     const Generator& random) const {
  if (!std::isfinite(loss.item())) {
    // The step may have collective calls, so one of several ranks cannot run it again alone.
    const std::string bad =
        ranks_.alone()
            ? explain_bad_loss(parts_.model,
                               options_.step ? options_.step : TrainingStep(classification_step),
                               batch, random)
            : first_bad_tensor(parts_.model);
    return bad.empty() ? kFiniteModel : bad;
  }
  return {};
}

// An error on the CPU comes before backward, so the weights do not change.
Tensor DivergenceWatch::check_loss(const Tensor& loss, const data::Batch& batch,
                                   const Generator& random, int64_t step) const {
  const bool known = loss.device().is_cpu();
  if (ignores() || (known && std::isfinite(loss.item()))) {
    return loss;
  }
  const bool ends = losses_must_be_finite() ||
                    (options_.on_nan == OnNan::roll_back && ranks_.alone() && !parts_.scaler);
  if (known && ends) {
    fail_of_bad_loss(
        loss.item(),
        text("in step ", step, " (samples ", list_of_samples(batch.indices), " of the data set)"),
        explain(loss, batch, random));
  }
  return skips() ? with_its_gradient(loss) : loss;
}

void DivergenceWatch::end_step(const optim::StepResult& result, int64_t step) {
  if (ignores() || !result.known() || result != StepOutcome::overflow) {
    return;
  }
  restore_buffers();
  if (options_.on_nan == OnNan::roll_back && !parts_.scaler) {
    throw Diverged(text("trainer: the gradients of step ", step, " are not finite"));
  }
}

void DivergenceWatch::check_read_losses(const RunState& state) const {
  const auto& first = state.loss.first_bad();
  if (first && losses_must_be_finite()) {
    const std::string bad = first_bad_tensor(parts_.model);
    fail_of_bad_loss(first->loss, text("in step ", first->step), bad.empty() ? kFiniteModel : bad);
  }
}

// Even without a bad loss the last update may have made weights that are not finite. No later step
// could mend them, and no checkpoint may store them.
void DivergenceWatch::check(const RunState& state) {
  if (ignores()) {
    return;
  }
  (void)state.loss.total();
  check_read_losses(state);
  const int64_t skipped = state.skipped(parts_.optimizer),
                before = std::exchange(skipped_, skipped);
  if (!on_cpu()) {
    if (skipped > before) {
      restore_buffers();
    }
    keep_buffers();
  }
  const std::string bad = first_bad_tensor(parts_.model);
  if (ranks_.largest(bad.empty() ? 0 : 1) > 0) {
    throw Diverged(text("trainer: after step ", state.steps - 1, " ",
                        bad.empty() ? "the model of another rank is not finite" : bad,
                        ", expected finite weights; lower the learning rate, clip the gradients, "
                        "mend the data, or see TrainerOptions::on_nan"));
  }
  if (skipped > before && options_.on_nan == OnNan::roll_back && !parts_.scaler) {
    throw Diverged(text("trainer: the gradients of ", skipped - before, " of the steps before ",
                        state.steps, " are not finite"));
  }
}

// Training may go well where validation does not: the data of validation may be bad. With a loss
// scaler an overflow in f16 is one of its troubles, and the run continues.
void DivergenceWatch::check_validation_loss(double loss, int64_t epoch) const {
  if (std::isfinite(loss) || ignores()) {
    return;
  }
  const std::string where = text("in the validation of epoch ", epoch);
  const bool rolls_back = options_.on_nan == OnNan::roll_back;
  if (!rolls_back && (parts_.scaler || options_.on_nan == OnNan::skip)) {
    warn(text("trainer: got a loss of ", std::isnan(loss) ? std::abs(loss) : loss, " ", where,
              "; it is no better than any other"));
    return;
  }
  fail_of_bad_loss(loss, where, "the weights are finite, so look at the data of validation");
}

// A loss scale that can fall may need the steps of an epoch for that.
void DivergenceWatch::check_epoch(const RunState& state) const {
  const int64_t steps = state.steps - steps_before_, skipped = skipped_ - skipped_before_;
  const bool may_fall = parts_.scaler && parts_.scaler->options().backoff_factor < 1;
  if (!ignores() && !may_fall && steps > 0 && skipped == steps) {
    throw Diverged(text("trainer: none of the ", steps, " steps of epoch ", state.epoch,
                        " was applied, their gradients are not finite",
                        parts_.scaler ? text(" at the fixed loss scale ", parts_.scaler->scale(),
                                             "; expected a smaller or a dynamic one")
                                      : "; lower the learning rate or mend the data"));
  }
}

void DivergenceWatch::check_run(const RunState& state) const {
  if (!ignores() && state.steps > 0 && state.skipped(parts_.optimizer) == state.steps) {
    throw Diverged(text("trainer: none of the ", state.steps,
                        " steps of the run was applied, their gradients are not finite"));
  }
}

}  // namespace binade::train
