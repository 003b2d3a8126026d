#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/kernels/base/math_mode.h>
#include <binade/train/bad_loss_internal.h>
#include <binade/train/lens.h>
#include <binade/train/lens_report.h>
#include <binade/train/loop/named_values_internal.h>
#include <binade/train/model_file.h>
#include <binade/train/precision/shadow_report.h>
#include <binade/train/profiler.h>
#include <binade/train/report/numbers_internal.h>
#include <binade/train/run_directory.h>
#include <binade/train/stop_signal.h>
#include <binade/train/trainer_run_internal.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace binade::train {
// Ranks draw different random numbers while they train, for example for dropout. Rank 0 draws the
// numbers of a run on one process, so that a checkpoint can store its generator.
class TrainerRun::RankSeed {
 public:
  explicit RankSeed(int rank) : change_(static_cast<uint64_t>(rank) * 0x9E3779B97F4A7C15U) {
    apply();
  }
  ~RankSeed() { apply(); }
  // To the generator of a checkpoint, or back.
  void apply() const { generator().seed ^= change_; }
  RankSeed(const RankSeed&) = delete;
  RankSeed& operator=(const RankSeed&) = delete;

 private:
  uint64_t change_;
};

TrainerRun::TrainerRun(const TrainingParts& parts, TrainerOptions options)
    : options_(checked(std::move(options))),
      parts_(parts, options_),
      ranks_(options_.group),
      display_(options_.progress && ranks_.is_root()),
      evaluator_(parts_, options_, ranks_),
      divergence_(parts_, options_, ranks_),
      runner_(parts_, options_, ranks_, display_, divergence_),
      monitor_(options_, parts_) {
  check_parts(parts_, options_);
  options_.settings.emplace("mode", kernels::to_string(kernels::math_mode()));
  options_.settings.emplace("monitor",
                            monitor_.key() + (monitor_.is_max() ? ", largest" : ", smallest"));
  can_be_stopped_ = ranks_.largest(options_.stop_on_signal || !options_.callbacks.empty() ||
                                   options_.max_time > 0) > 0;
  if (!options_.run.empty()) {
    ranks_.on_root([this] {
      directory_ =
          std::make_unique<RunDirectory>(options_.run, options_.resume, options_.overwrite);
    });
  }
  log_ = std::make_unique<RunLog>(options_, ranks_, directory_.get());
  checkpoints_ = std::make_unique<RunCheckpoints>(parts_, options_, ranks_, directory_.get());
  if (options_.resume) {
    resumed_ = checkpoints_->resume(state_, best_, [this] { runner_.go_on_in_full_precision(); });
  }
  seconds_before_ = state_.seconds;
  open_files();
  runner_.make_data_parallel();
}

TrainerRun::~TrainerRun() = default;

optim::Optimizer& TrainerRun::optimizer(size_t phase) const {
  check(phase < parts_.phases.size(), "trainer: got phase ", phase, " of ", parts_.phases.size());
  return *parts_.phases[phase]->optimizer;
}

// the beginning -----------------------------------------------------------------------------------

void TrainerRun::begin(data::Loader& train, data::Loader*& validation) {
  check(!ended_, "trainer: got another fit() after the run ended in epoch ", state_.epoch,
        options_.epochs.value_or(10) > 0 && epochs() < std::numeric_limits<int64_t>::max()
            ? text(" of ", epochs())
            : "",
        ", expected one fit() per run; make a new Trainer to train the model further");
  ranks_.check_loader(train, "training", true);
  check_position(train);
  if (validation) {
    ranks_.check_loader(*validation, "validation", false);
    evaluator_.check_step("a validation loader");
  }
  check_use_of(validation);
  check_intervals(parts_, steps_of_run(train));
  checkpoints_->check_data(train, validation, state_.batch > 0);
  if (validation && options_.overfit_batches > 0) {
    validation = &train;
  }
  stopped_by_ = 0;
  stop_request_.clear();
  stop_reason_.clear();
  asked_to_stop_ = false;
  started_ = Clock::now();
}

void TrainerRun::check_use_of(const data::Loader* validation) const {
  const ValidateEvery& every = options_.validate_every;
  check(validation || (every.steps == 0 && every.epochs == 1),
        "trainer: got validate_every and no validation loader, expected one for fit()");
}

// In the middle of an epoch the position counts batches of all ranks. Between epochs the samples of
// a step may come in other batches, but not in another number.
void TrainerRun::check_position(const data::Loader& train) {
  const int64_t batch = train.options().batch * ranks_.count();
  check(state_.batch == 0 || state_.global_batch == 0 || state_.global_batch == batch,
        "resume: got ", ranks_.count(), " ranks with batches of ", train.options().batch,
        ", but epoch ", state_.epoch + 1, " was begun with ", state_.global_batch,
        " samples per batch of all ranks; choose the batch so that the product is the same");
  const bool known = state_.global_batch != 0 && state_.accumulate != 0;
  if (known && (state_.global_batch != batch || state_.accumulate != options_.accumulate)) {
    manifest::tell_other_batch({batch, options_.accumulate},
                               {state_.global_batch, state_.accumulate}, options_.force,
                               ranks_.is_root());
  }
  state_.global_batch = batch;
  state_.accumulate = options_.accumulate;
}

// The sanity check. Its values give the keys of the later validations.
void TrainerRun::try_validation(data::Loader* validation) {
  if (!validation || options_.sanity_batches == 0 || is_over()) {
    monitor_.begin(validation != nullptr, nullptr);
    return;
  }
  const int64_t limit = limit_of_validation();
  const Evaluation tried = evaluator_.try_out(
      *validation, limit > 0 ? std::min(limit, options_.sanity_batches) : options_.sanity_batches);
  NamedValues known{{"validation_loss", tried.loss}};
  for (const auto& [name, value] : tried.values) {
    known.emplace_back("validation_" + name, value);
  }
  monitor_.begin(true, tried.samples > 0 ? &known : nullptr);
}

void TrainerRun::set_training_mode() {
  parts_.model.train();
  std::vector<bool> modes = parts_.model.training_modes();
  const std::vector<std::string> paths = parts_.model.module_paths();
  for (const std::string& pattern : options_.keep_eval) {
    bool any = false;
    for (size_t i = 0; i < paths.size(); ++i) {
      if (!paths[i].empty() && matches_module(pattern, paths[i])) {
        modes[i] = false;
        any = true;
      }
    }
    check(any, "trainer: got keep_eval '", pattern,
          "', expected the path of a module or a pattern: ",
          list_names({paths.begin() + 1, paths.end()}));
  }
  parts_.model.set_training_modes(modes);
}

void TrainerRun::fit(data::Loader& train, data::Loader* validation) {
  begin(train, validation);
  const auto profiler = profile_run("", options_.run, ranks_.rank());  // if the environment asks
  const StopSignal signal(options_.stop_on_signal);
  const RankSeed seed(ranks_.rank());
  const Fit fit{train, validation, signal, seed};
  loader_ = &train;
  begin_journal();
  try {
    set_training_mode();
    runner_.begin(train);
    checkpoints_->prepare();
    try_validation(validation);
    log_->start_loggers();
    emit(Event::train_start, state_.epoch);
    agree_on_stop(signal);
    if (options_.on_nan == OnNan::roll_back && state_.steps == 0) {
      save();  // to return to
    }
    run(fit);
    finish();
  } catch (OutOfMemory& error) {
    explain(error, train);
    end_with(error);
    throw;
  } catch (const std::exception& error) {
    end_with(error);
    throw;
  }
}

// epochs ------------------------------------------------------------------------------------------

void TrainerRun::run(const Fit& fit) {
  while (!is_over()) {
    try {
      run_epoch(fit);
    } catch (const Diverged& error) {
      roll_back(error, fit.seed);
    } catch (const optim::OverflowAtFloor& error) {
      roll_back(error, fit.seed);
    }
  }
}

int64_t TrainerRun::epochs() const {
  const bool other_limit = options_.max_steps > 0 || options_.max_time > 0;
  const int64_t epochs = options_.epochs.value_or(other_limit ? 0 : 10);
  return epochs > 0 ? epochs : std::numeric_limits<int64_t>::max();
}

bool TrainerRun::is_over() const {
  return state_.epoch >= epochs() || state_.finished || stopped_by_ != 0 || asked_to_stop_ ||
         (options_.max_steps > 0 && state_.steps >= options_.max_steps) ||
         (options_.max_time > 0 && seconds_before_ >= options_.max_time);
}

int64_t TrainerRun::batches_of_epoch(const data::Loader& train) const {
  int64_t batches = train.batches_per_epoch();
  for (const int64_t limit : {options_.limit_batches.train, options_.overfit_batches}) {
    batches = limit > 0 ? std::min(batches, limit) : batches;
  }
  return batches;
}

int64_t TrainerRun::steps_of_run(const data::Loader& train) const {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  const int64_t per_epoch =
      (batches_of_epoch(train) + options_.accumulate - 1) / options_.accumulate;
  const int64_t steps =
      epochs() < kNoLimit / std::max<int64_t>(per_epoch, 1) ? epochs() * per_epoch : kNoLimit;
  return options_.max_steps > 0 ? std::min(steps, options_.max_steps) : steps;
}

int64_t TrainerRun::limit_of_validation() const {
  return options_.overfit_batches > 0 ? options_.overfit_batches
                                      : options_.limit_batches.validation;
}

void TrainerRun::run_epoch(const Fit& fit) {
  epoch_started_ = shown_ = Clock::now();
  epoch_samples_ = 0;
  first_step_ = state_.steps;
  first_batch_ = state_.batch;
  if (state_.batch == 0) {
    emit(Event::epoch_start, state_.epoch);
    agree_on_stop(fit.signal);
    if (is_over()) {
      return;
    }
  }
  divergence_.begin_epoch(state_);
  train_epoch(fit);
  if (state_.batch == batches_of_epoch(fit.train)) {
    end_epoch(fit);
  }
}

void TrainerRun::train_epoch(const Fit& fit) {
  const int64_t batches = batches_of_epoch(fit.train);
  const double interval = display_.is_live() ? 0.5 : 30;
  enter_epoch(fit.train);
  data::Batch batch;
  while (fit.train.next(batch)) {
    check(
        batch.epoch == (options_.overfit_batches > 0 ? 0 : state_.epoch),
        "trainer: got a batch of epoch ", batch.epoch, " from the training loader in epoch ",
        state_.epoch,
        ", expected the epoch that fit() began; give a loop or a Trainer that runs inside fit() a "
        "loader of its own");
    const bool last = ++state_.batch == batches;
    const bool stepped = runner_.run(batch, last, state_);
    apart_ = !ranks_.alone();
    epoch_samples_ += batch.size * ranks_.count();
    samples_ += batch.size * ranks_.count();
    if (stepped) {
      record_step();
      after_step(fit, batch, last);
      profile_step();
      if (is_over()) {
        return;
      }
    }
    if (last && batches < fit.train.batches_per_epoch()) {
      return;
    }
    if (seconds_since(shown_) > interval) {
      shown_ = Clock::now();
      runner_.ask(state_.steps);
      show_progress(fit.train);
    }
  }
}

// Starts the loader at the next batch to train on.
void TrainerRun::enter_epoch(data::Loader& train) const {
  train.epoch(options_.overfit_batches > 0 ? 0 : state_.epoch, state_.batch);
}

// Does the work that is due after a step, except at the end of an epoch, which has its own.
void TrainerRun::after_step(const Fit& fit, const data::Batch& batch, bool last) {
  emit(Event::step, state_.epoch, &batch);
  if (options_.log_every > 0 && state_.steps % options_.log_every == 0) {
    report_step();
  }
  agree_on_stop(fit.signal);
  if (last) {
    return;
  }
  const bool ends = is_over() && stopped_by_ == 0;
  const int64_t every = options_.validate_every.steps;
  const bool validates = fit.validation && (ends || (every > 0 && state_.steps % every == 0));
  if (validates || ends) {
    report_mid_epoch(fit, validates);
    agree_on_stop(fit.signal);  // a callback may have asked for it
  }
  const bool due = options_.checkpoint_every > 0 && state_.steps % options_.checkpoint_every == 0;
  if (due || is_over()) {
    look_at_steps();
    save();
  }
  if (validates && fit.validation == &fit.train) {
    enter_epoch(fit.train);
  }
}

// Checks all steps so far. Waits for a device.
void TrainerRun::look_at_steps() {
  runner_.ask(state_.steps);  // its error names the samples
  divergence_.check(state_);
  runner_.follow_floor(state_);
}

void TrainerRun::end_epoch(const Fit& fit) {
  runner_.ask(state_.steps);
  divergence_.check(state_);
  divergence_.check_epoch(state_);
  runner_.follow_floor(state_);
  agree();
  Report report = begin_report(fit);
  const int64_t epoch = state_.epoch++;
  state_.batch = 0;
  state_.losses = state_.logs = RunningValues();
  const ValidateEvery& every = options_.validate_every;
  const bool due =
      every.steps > 0 ? state_.steps % every.steps == 0 : state_.epoch % every.epochs == 0;
  const bool validates = fit.validation && (due || (is_over() && stopped_by_ == 0));
  finish_report(fit, report, {.validates = validates, .ends_epoch = true});
  save();
  emit(Event::epoch_end, epoch);
  agree_on_stop(fit.signal);
}

// the end -----------------------------------------------------------------------------------------

void TrainerRun::finish() {
  checkpoints_->wait();
  check_saved();
  if (stopped_by_ == 0) {
    divergence_.check_run(state_);
    if (!best_.empty() || parts_.ema) {
      parts_.model.load_state(best_.empty() ? parts_.ema->averages() : best_);
    }
    if (stop_reason_.empty()) {
      stop_reason_ = reason_of_end();
    }
  } else {
    stop_reason_ = text("signal ", stopped_by_);
  }
  ended_ = stopped_by_ == 0;
  write_lens_page();
  write_shadow_page();
  flush_scaler_log();
  log_->finish();
  emit(Event::train_end, state_.epoch);
  end_journal(stop_reason_.empty() ? "finished" : stop_reason_);
}

// Empty if all epochs were trained.
std::string TrainerRun::reason_of_end() const {
  if (state_.finished) {
    return text("patience: ", monitor_.key(), " was not better ", state_.bad_looks,
                state_.bad_looks == 1 ? " time" : " times");
  }
  if (options_.max_steps > 0 && state_.steps >= options_.max_steps) {
    return text("max_steps ", options_.max_steps);
  }
  return options_.max_time > 0 && state_.epoch < epochs() ? text("max_time ", options_.max_time)
                                                          : "";
}

// Tells the callbacks and ends the logs; if that fails, it is a warning besides the error.
void TrainerRun::end_with(const std::exception& error) {
  try {
    emit(Event::exception, state_.epoch, nullptr, &error);
  } catch (const std::exception& other) {
    warn(text("trainer: a callback failed at the end of a failed run: ", other.what()));
  }
  try {
    flush_scaler_log();
    log_->finish();
  } catch (const std::exception& other) {
    warn(text("trainer: a log could not be ended: ", other.what()));
  }
  end_journal(text("failed: ", error.what()));
}

// Called in a handler: throws the error again unless the options say to go on. All ranks come here,
// or an error of one has ended the job.
void TrainerRun::roll_back(const Error& error, const RankSeed& seed) {
  if (options_.on_nan != OnNan::roll_back) {
    throw;
  }
  const int64_t done = state_.rollbacks, from = state_.steps, batch = state_.global_batch;
  if (done == options_.roll_back.most) {
    throw Diverged(text(error.what(), "; the run has returned to a checkpoint ", done,
                        done == 1 ? " time already" : " times already"));
  }
  checkpoints_->wait();
  (void)checkpoints_->take_refusal();  // of the steps that are undone
  check(checkpoints_->resume(state_, best_, [this] { runner_.go_on_in_full_precision(); }),
        error.what(), "; there is no checkpoint left to return to");
  seed.apply();
  state_.global_batch = batch;
  state_.accumulate = options_.accumulate;
  state_.rollbacks = done + 1;
  scale_rates(parts_, state_, std::pow(options_.roll_back.factor, done + 1));
  runner_.begin_again();
  open_files();
  begin_journal();
  if (ranks_.is_root()) {
    warn(text(error.what(), ": return number ", done + 1, " of at most ", options_.roll_back.most,
              ", from step ", from, " to step ", state_.steps, ", with ", state_.rate_scale,
              " times the learning rate"));
  }
  save();  // so that a resumed run counts this return, too
}

// Moves lines of steps that this run writes again to other files.
void TrainerRun::open_files() {
  log_->open(state_.epoch, state_.steps, resumed_ || state_.rollbacks > 0);
  open_scaler_log();
  open_shadow();
  if (options_.lens == 0 || !directory_) {
    return;
  }
  lens_.reset();
  const std::string file = options_.run + "/lens.jsonl";
  keep_lens_lines(file, state_.steps, directory_->files());
  lens_ = std::make_unique<Lens>(parts_.model.parameters(), parts_.optimizer(),
                                 LensOptions{.every = options_.lens,
                                             .layers = options_.lens_layers,
                                             .file = file,
                                             .files = &directory_->files(),
                                             .append = resumed_ || state_.rollbacks > 0});
  runner_.set_lens(lens_.get());
}

// A run without a scaler has a log only if it records gradients.
void TrainerRun::open_scaler_log() {
  runner_.set_scaler_log(nullptr, directory_ ? &directory_->files() : nullptr);
  scaler_log_.reset();
  const auto scaled = std::find_if(parts_.phases.begin(), parts_.phases.end(),
                                   [](const auto& phase) { return phase->scaler != nullptr; });
  const bool has_scaler = scaled != parts_.phases.end();
  if (!directory_ || (!has_scaler && !options_.record_gradients)) {
    return;
  }
  const std::string file = options_.run + "/scaler.jsonl";
  keep_scaler_lines(file, state_.steps, directory_->files());
  scaler_log_ = std::make_unique<ScalerLogFile>(
      file, has_scaler ? (*scaled)->scaler->options() : optim::LossScaler::fixed(1).options(),
      resumed_ || state_.rollbacks > 0, directory_->files());
  runner_.set_scaler_log(scaler_log_.get(), &directory_->files());
}

void TrainerRun::open_shadow() {
  shadow_.reset();
  if (options_.shadow == 0 || !directory_) {
    return;
  }
  const std::string file = options_.run + "/shadow.jsonl";
  keep_shadow_lines(file, state_.steps, directory_->files());
  shadow_ = std::make_unique<Shadow>(ShadowOptions{.every = options_.shadow,
                                                   .file = file,
                                                   .files = &directory_->files(),
                                                   .append = resumed_ || state_.rollbacks > 0});
  runner_.set_shadow(shadow_.get());
}

void TrainerRun::write_shadow_page() const {
  if (shadow_ && shadow_->looked()) {
    write_file_durably(options_.run + "/shadow.html",
                       to_html(read_shadow(options_.run + "/shadow.jsonl", directory_->files())),
                       directory_->files());
  }
}

void TrainerRun::flush_scaler_log() {
  runner_.note_steps();
  if (scaler_log_) {
    scaler_log_->flush();
  }
}

void TrainerRun::write_lens_page() const {
  if (lens_) {
    write_file_durably(options_.run + "/lens.html",
                       to_html(read_lens(options_.run + "/lens.jsonl", directory_->files())),
                       directory_->files());
  }
}

// ranks -------------------------------------------------------------------------------------------

// Every rank gets the mean of the running statistics, and its share of the sums, so that a
// continued run and a resumed run are the same. Moving averages commute with the mean over ranks,
// so the number of times they are averaged changes only the rounding.
void TrainerRun::agree() {
  if (!apart_) {
    return;
  }
  NamedTensors floating;
  for (const auto& entry : parts_.model.named_buffers()) {
    if (is_floating(entry.second.dtype())) {
      floating.push_back(entry);
    }
  }
  ranks_.average(floating);
  state_.losses.reduce(ranks_);
  state_.logs.reduce(ranks_);
  apart_ = false;
}

// All ranks stop after the same step.
void TrainerRun::agree_on_stop(const StopSignal& signal) {
  if (!can_be_stopped_) {
    return;
  }
  const double seconds = seconds_before_ + seconds_since(started_);
  const bool late = options_.max_time > 0 && seconds >= options_.max_time;
  const std::vector<double> asked = ranks_.largest(
      std::vector<double>{options_.stop_on_signal ? static_cast<double>(signal.noted()) : 0.0,
                          stop_request_.empty() ? 0.0 : 1.0, late ? 1.0 : 0.0});
  stopped_by_ = static_cast<int>(asked[0]);
  if (asked[1] > 0 || asked[2] > 0) {
    asked_to_stop_ = true;
    stop_reason_ = asked[1] == 0           ? text("max_time ", options_.max_time)
                   : stop_request_.empty() ? "a callback of another rank asked for it"
                                           : stop_request_;
  }
}

}  // namespace binade::train
