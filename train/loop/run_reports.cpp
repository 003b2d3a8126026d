// The lines of a run (values of training and validation, the monitored value, the state), and its
// events.
#include <binade/core/observe/timeline.h>
#include <binade/core/ops.h>
#include <binade/kernels/base/math_mode.h>
#include <binade/nn/format_histories.h>
#include <binade/train/bad_loss_internal.h>
#include <binade/train/loop/named_values_internal.h>
#include <binade/train/model_file.h>
#include <binade/train/report/numbers_internal.h>
#include <binade/train/trainer_run_internal.h>

#include <cmath>
#include <limits>

namespace binade::train {
namespace {

// The precision of a model: "fp16", "bf16", else "fp32" or "fp64".
std::string precision_of(const nn::Module& model) {
  const Precision precision = model.precision().value_or(Precision::full());
  if (precision.policy != Precision::kFull) {
    return precision.low == DType::f16 ? "fp16" : "bf16";
  }
  const NamedTensors parameters = model.named_parameters();
  return !parameters.empty() && parameters[0].second.dtype() == DType::f64 ? "fp64" : "fp32";
}

double norm_of_weights(nn::Module& model) {
  double squares = 0;
  const Arena* arena = model.parameters().arena().get();
  for (const Parameter& parameter : model.parameters()) {
    squares += sum_of_squares(arena->exact_value(parameter));
  }
  return std::sqrt(squares);
}

std::string limit_words(const char* what, int64_t at, int64_t limit) {
  return limit > 0 && limit < std::numeric_limits<int64_t>::max() ? text(what, " ", at, "/", limit)
                                                                  : text(what, " ", at);
}

}  // namespace

// validation, test, model -------------------------------------------------------------------------

Evaluation TrainerRun::validate(data::Loader& loader) {
  ranks_.check_loader(loader, "validation", false);
  agree();
  return evaluator_.evaluate(loader, "validation", options_.limit_batches.validation,
                             uses_averages());
}

Evaluation TrainerRun::test(data::Loader& loader) {
  ranks_.check_loader(loader, "test", false);
  agree();
  Evaluation result =
      evaluator_.evaluate(loader, "test", options_.limit_batches.test, uses_averages());
  NamedValues values{{"test_loss", result.loss}};
  for (const auto& [name, value] : result.values) {
    values.emplace_back("test_" + name, value);
  }
  log_->add_to_last(values);
  if (journal_) {
    journal_->report();
  }
  return result;
}

void TrainerRun::save_model() {
  check(!options_.run.empty(), "trainer: got save_model() without a run directory to write to");
  ranks_.on_root([this] {
    save_tensors(options_.run + "/model.safetensors",
                 uses_averages() ? parts_.ema->averages() : parts_.model.state(), {},
                 directory_->files());
  });
}

void TrainerRun::save() {
  if (options_.run.empty()) {
    return;
  }
  const PhaseSpan phase("checkpoint");
  agree();
  flush_scaler_log();
  if (options_.max_time > 0) {
    state_.seconds = seconds_before_ + seconds_since(started_);
  }
  checkpoints_->save(state_);
  check_saved();
  emit(Event::checkpoint, state_.epoch);
}

// Finite weights do not make a finite state: a moment that is infinite stops its weight for ever,
// and no checkpoint could be saved any more. Collective.
void TrainerRun::check_saved() {
  const std::string bad = checkpoints_->take_refusal();
  if (ranks_.largest(bad.empty() ? 0 : 1) > 0) {
    throw Diverged(text("trainer: the state up to step ", state_.steps - 1, " cannot be saved, ",
                        bad.empty() ? "a tensor" : bad,
                        " is not finite; the checkpoint before it stays; lower the learning rate, "
                        "clip the gradients, mend the data, or see TrainerOptions::on_nan"));
  }
}

std::string TrainerRun::hash_of_state() const {
  NamedTensors all = parts_.model.state();
  for (auto& entry : parts_.optimizer_tensors()) {
    all.push_back(std::move(entry));
  }
  if (parts_.ema) {
    for (const auto& [name, average] : parts_.ema->averages()) {
      all.emplace_back("ema." + name, average);
    }
  }
  for (const auto& [name, largest] : nn::format_histories(parts_.model)) {
    all.emplace_back("scales." + name, largest);
  }
  return ranks_.is_root() ? state_hash(all) : std::string();
}

// lines -------------------------------------------------------------------------------------------

// train_loss is the sum over the phases.
NamedValues TrainerRun::training_values(const RunningValues& losses,
                                        const RunningValues& logs) const {
  NamedValues values;
  double sum = 0;
  for (const auto& phase : parts_.phases) {
    sum += losses.mean(phase->loss_name());
  }
  values.emplace_back("train_loss", sum);
  for (const auto& [name, mean] : losses.means()) {
    if (name != "loss") {
      values.emplace_back("train_" + name, mean);
    }
  }
  for (const auto& [name, mean] : logs.means()) {
    values.emplace_back("train_" + name, mean);
  }
  return values;
}

// Waits for a device.
void TrainerRun::add_rates(NamedValues& values) const {
  for (const auto& phase : parts_.phases) {
    const std::string end = phase->name.empty() ? "" : "_" + phase->name;
    values.emplace_back("learning_rate" + end, phase->optimizer->lr());
    values.emplace_back("loss_scale" + end, phase->scaler ? phase->scaler->scale() : 1);
  }
}

// Rates, scales and norms. Waits for a device.
void TrainerRun::add_state(NamedValues& values) const {
  add_rates(values);
  for (const auto& phase : parts_.phases) {
    const std::string end = phase->name.empty() ? "" : "_" + phase->name;
    // This is the norm of the last step, since a resumed run does not know earlier norms.
    if (options_.log_norms && phase->takes_part(state_.steps - 1) &&
        phase->optimizer->last_norm() >= 0) {
      values.emplace_back("gradient_norm" + end, phase->optimizer->last_norm());
    }
  }
  if (options_.log_norms) {
    values.emplace_back("weight_norm", norm_of_weights(parts_.model));
  }
  values.emplace_back("skipped_steps", static_cast<double>(parts_.skipped(state_.steps)));
}

void TrainerRun::report_step() {
  RunningValues step = runner_.step_values();
  step.reduce(ranks_);
  ScalarRecord record{.step = state_.steps, .epoch = state_.epoch, .values = {}, .words = {}};
  record.values = training_values(step, RunningValues());
  add_state(record.values);
  log_->step_line(record);
}

// REQUIRES: the ranks agree.
TrainerRun::Report TrainerRun::begin_report(const Fit& fit) const {
  Report report;
  report.record = {.step = state_.steps,
                   .epoch = state_.epoch,
                   .values = training_values(state_.losses, state_.logs),
                   .words = {{"precision", precision_of(parts_.model)},
                             {"mode", kernels::to_string(kernels::math_mode())},
                             {"state_hash", hash_of_state()}}};
  report.record.words.insert(report.record.words.end() - 1, options_.notes.begin(),
                             options_.notes.end());
  const double seconds = seconds_since(epoch_started_);
  report.rest.emplace_back("samples_per_second",
                           static_cast<double>(epoch_samples_) / std::max(seconds, 1e-9));
  add_state(report.rest);
  const data::LoaderStats stats = fit.train.stats();
  report.rest.emplace_back("workers", stats.workers);
  report.decode_errors = static_cast<double>(stats.decode_errors);
  return report;
}

void TrainerRun::finish_report(const Fit& fit, Report& report, const ReportKind& kind) {
  ScalarRecord& record = report.record;
  if (kind.validates) {
    validate_into(fit, report);
  }
  const bool best = look_at_monitor(record, kind);
  record.values.insert(record.values.end(), report.rest.begin(), report.rest.end());
  record.values.emplace_back("decode_errors", ranks_.sum({report.decode_errors})[0]);
  log_->line(record);
  display_.line(record,
                kind.ends_epoch ? limit_words("epoch", record.epoch + 1, epochs())
                                : limit_words("step", record.step, options_.max_steps),
                runner_.skipped_words(state_));
  if (best) {
    checkpoints_->save_best(state_);
  }
  if (kind.validates) {
    emit(Event::validation, record.epoch);
  }
}

void TrainerRun::report_mid_epoch(const Fit& fit, bool validates) {
  look_at_steps();
  agree();
  Report report = begin_report(fit);
  finish_report(fit, report, {.validates = validates, .ends_epoch = false});
}

void TrainerRun::validate_into(const Fit& fit, Report& report) {
  const Evaluation evaluation =
      evaluator_.evaluate(*fit.validation, "validation", limit_of_validation(), uses_averages());
  NamedValues& values = report.record.values;
  values.emplace_back("validation_loss", evaluation.loss);
  for (const auto& [name, value] : evaluation.values) {
    values.emplace_back("validation_" + name, value);
  }
  divergence_.check_validation_loss(evaluation.loss, report.record.epoch);
  report.decode_errors += static_cast<double>(fit.validation->stats().decode_errors);
}

// Returns true if the monitored value is the best one so far, whose weights are kept.
bool TrainerRun::look_at_monitor(const ScalarRecord& record, const ReportKind& kind) {
  if (!monitor_.is_on()) {
    if (parts_.plateau && kind.ends_epoch) {
      parts_.plateau->advance(value_of("trainer", record.values, "train_loss"));
    }
    return false;
  }
  const bool of_validation = monitor_.key().starts_with("validation_");
  if (of_validation ? !kind.validates : !kind.ends_epoch) {
    return false;
  }
  const double* value = find_value(record.values, monitor_.key());
  if (!value) {
    refuse_monitor(monitor_.key(), record.values);
  }
  if (parts_.plateau) {
    parts_.plateau->advance(*value);
  }
  if (!std::isnan(*value) &&
      (state_.best_epoch < 0 || monitor_.is_better(*value, state_.best_value))) {
    state_.best_value = *value;
    state_.best_epoch = record.epoch;
    state_.bad_looks = 0;
    best_ = copies(parts_.evaluated_state());
    return true;
  }
  ++state_.bad_looks;
  state_.finished = options_.patience > 0 && state_.bad_looks >= options_.patience;
  return false;
}

void TrainerRun::show_progress(const data::Loader& loader) const {
  const int64_t batches = batches_of_epoch(loader);
  const double seconds = seconds_since(epoch_started_);
  const double done = static_cast<double>(state_.batch - first_batch_);
  const double per_batch = seconds / std::max(done, 1.0);
  double left = std::numeric_limits<double>::infinity();
  if (epochs() < std::numeric_limits<int64_t>::max()) {
    left =
        per_batch * (static_cast<double>(epochs() - state_.epoch) * static_cast<double>(batches) -
                     static_cast<double>(state_.batch));
  }
  if (options_.max_steps > 0) {
    left = std::min(left, per_batch * static_cast<double>((options_.max_steps - state_.steps) *
                                                          options_.accumulate));
  }
  if (options_.max_time > 0) {
    left = std::min(left, options_.max_time - seconds_before_ - seconds_since(started_));
  }
  const NamedValues values = training_values(state_.losses, state_.logs);
  display_.progress(
      loader, {.where = limit_words("epoch", state_.epoch + 1, epochs()),
               .step = limit_words("step", state_.steps, options_.max_steps),
               .share = static_cast<double>(state_.batch) / static_cast<double>(batches),
               .loss = values[0].second,  // between calls of agree() that of this rank's share
               .lr = parts_.optimizer().lr(),
               .scale = parts_.first().scaler ? parts_.first().scaler->scale() : 1.0,
               .skipped = runner_.skipped_words(state_),
               .samples_per_second = static_cast<double>(epoch_samples_) / std::max(seconds, 1e-9),
               .seconds_left = left});
}

// events ------------------------------------------------------------------------------------------

void TrainerRun::emit(Event event, int64_t epoch, const data::Batch* batch,
                      const std::exception* error) {
  if (options_.callbacks.empty()) {
    return;
  }
  std::vector<optim::Optimizer*> optimizers;
  for (const auto& phase : parts_.phases) {
    optimizers.push_back(phase->optimizer);
  }
  const RunView view{.event = event,
                     .epoch = epoch,
                     .batch = state_.batch,
                     .step = state_.steps,
                     .rank = ranks_.rank(),
                     .ranks = ranks_.count(),
                     .model = parts_.model,
                     .optimizers = optimizers,
                     .ema = parts_.ema,
                     .data = batch,
                     .output = batch ? &runner_.output() : nullptr,
                     .values = log_->values(),
                     .directory = options_.run,
                     .error = error,
                     .stop_reason = &stop_request_};
  using Function = Callbacks::Function;
  static constexpr Function Callbacks::*kFunctions[] = {
      &Callbacks::train_start, &Callbacks::train_end, &Callbacks::epoch_start,
      &Callbacks::epoch_end,   &Callbacks::step,      &Callbacks::validation,
      &Callbacks::checkpoint,  &Callbacks::exception};
  for (const Callbacks& callbacks : options_.callbacks) {
    if (const Function& f = callbacks.*kFunctions[static_cast<size_t>(event)]) {
      f(view);
    }
  }
}

}  // namespace binade::train
