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

void scale_rates(const RunParts& parts, RunState& state, double scale) {
  for (const auto& phase : parts.phases) {
    if (phase->schedule) {
      phase->schedule->set_scale(scale);
      continue;
    }
    optim::Optimizer& optimizer = *phase->optimizer;
    for (size_t i = 0; i < optimizer.group_count(); ++i) {
      optimizer.set_lr(i, optimizer.lr(i) * scale / state.rate_scale);
    }
  }
  state.rate_scale = scale;
}

std::vector<int64_t> DivergenceWatch::skipped(const RunState& state) const {
  std::vector<int64_t> skipped;
  for (const auto& phase : parts_.phases) {
    skipped.push_back(phase->skipped(state.steps));
  }
  return skipped;
}

void DivergenceWatch::begin_epoch(const RunState& state) {
  if (ignores()) {
    return;
  }
  steps_before_ = state.steps;
  skipped_before_ = skipped_ = skipped(state);
  buffers_.clear();
  for (const auto& [name, tensor] : parts_.model.named_buffers()) {
    if ((skips() || parts_.has_scaler()) && is_floating(tensor.dtype())) {
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

std::string DivergenceWatch::explain(const Phase& phase, const Tensor& loss,
                                     const data::Batch& batch, const Generator& random) const {
  if (!std::isfinite(loss.item())) {
    // The step may have collective calls, so one of several ranks cannot run it again alone.
    const std::string bad = ranks_.alone()
                                ? explain_bad_loss(parts_.model, phase.step, batch, random)
                                : first_bad_tensor(parts_.model);
    return bad.empty() ? kFiniteModel : bad;
  }
  return {};
}

// On the CPU the error comes before backward, so the weights do not change.
Tensor DivergenceWatch::check_loss(const Phase& phase, const Tensor& loss, const data::Batch& batch,
                                   const Generator& random, int64_t step) const {
  const bool known = loss.device().is_cpu();
  if (ignores() || (known && std::isfinite(loss.item()))) {
    return loss;
  }
  const bool ends = losses_must_be_finite(phase) ||
                    (options_.on_nan == OnNan::roll_back && ranks_.alone() && !phase.scaler);
  if (known && ends) {
    fail_of_bad_loss(loss.item(),
                     text("in step ", step, phase.words(), " (samples ",
                          list_of_samples(batch.indices), " of the data set)"),
                     explain(phase, loss, batch, random));
  }
  return skips() ? with_its_gradient(loss) : loss;
}

void DivergenceWatch::end_step(const Phase& phase, const optim::StepResult& result, int64_t step) {
  if (ignores() || !result.known() || result != StepOutcome::overflow) {
    return;
  }
  restore_buffers();
  if (options_.on_nan == OnNan::roll_back && !phase.scaler) {
    throw Diverged(text("trainer: the gradients of step ", step, phase.words(), " are not finite"));
  }
}

void DivergenceWatch::check_read_losses(const RunState& state) const {
  for (const auto& phase : parts_.phases) {
    const RunningMean* losses = state.losses.find(phase->loss_name());
    const auto first = losses ? losses->sum.first_bad() : std::nullopt;
    if (first && losses_must_be_finite(*phase)) {
      const std::string bad = first_bad_tensor(parts_.model);
      fail_of_bad_loss(first->loss, text("in step ", first->step, phase->words()),
                       bad.empty() ? kFiniteModel : bad);
    }
  }
}

// Even without a bad loss the last update may have made weights that are not finite. No later step
// could mend them, and no checkpoint may store them.
void DivergenceWatch::check(const RunState& state) {
  if (ignores()) {
    return;
  }
  (void)state.losses.means();  // reads what is still on a device
  check_read_losses(state);
  const std::vector<int64_t> now = skipped(state), before = std::exchange(skipped_, now);
  if (!on_cpu()) {
    if (now != before) {
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
  for (size_t i = 0; i < now.size(); ++i) {
    const Phase& phase = *parts_.phases[i];
    if (now[i] > before[i] && options_.on_nan == OnNan::roll_back && !phase.scaler) {
      throw Diverged(text("trainer: the gradients of ", now[i] - before[i], " of the steps before ",
                          state.steps, phase.words(), " are not finite"));
    }
  }
}

// Training may be fine although validation is not, for example if the validation data are bad. With
// a loss scaler the validation may also overflow in f16; then the run continues.
void DivergenceWatch::check_validation_loss(double loss, int64_t epoch) const {
  if (std::isfinite(loss) || ignores()) {
    return;
  }
  const std::string where = text("in the validation of epoch ", epoch);
  const bool rolls_back = options_.on_nan == OnNan::roll_back;
  if (!rolls_back && (parts_.has_scaler() || options_.on_nan == OnNan::skip)) {
    warn(text("trainer: got a loss of ", std::isnan(loss) ? std::abs(loss) : loss, " ", where,
              "; it is no better than any other"));
    return;
  }
  fail_of_bad_loss(loss, where, "the weights are finite, so look at the data of validation");
}

// A loss scale that can fall may need the steps of an epoch for that.
void DivergenceWatch::check_epoch(const RunState& state) const {
  for (size_t i = 0; i < skipped_.size() && !ignores(); ++i) {
    const Phase& phase = *parts_.phases[i];
    const int64_t steps = phase.taken(state.steps) - phase.taken(steps_before_);
    const bool may_fall = phase.scaler && phase.scaler->options().backoff_factor < 1;
    if (may_fall || steps == 0 || skipped_[i] - skipped_before_[i] < steps) {
      continue;
    }
    throw Diverged(text("trainer: none of the ", steps, " steps", phase.words(), " of epoch ",
                        state.epoch, " was applied, their gradients are not finite",
                        phase.scaler ? text(" at the fixed loss scale ", phase.scaler->scale(),
                                            "; expected a smaller or a dynamic one")
                                     : "; lower the learning rate or mend the data"));
  }
}

void DivergenceWatch::check_run(const RunState& state) const {
  for (const auto& phase : parts_.phases) {
    const int64_t steps = phase->taken(state.steps);
    if (!ignores() && steps > 0 && phase->skipped(state.steps) == steps) {
      throw Diverged(text("trainer: none of the ", steps, " steps", phase->words(),
                          " of the run was applied, their gradients are not finite"));
    }
  }
}

}  // namespace binade::train
