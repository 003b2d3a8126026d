#include <binade/core/io/file_system.h>
#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/kernels/base/math_mode.h>
#include <binade/train/bad_loss_internal.h>
#include <binade/train/lens.h>
#include <binade/train/lens_report.h>
#include <binade/train/model_file.h>
#include <binade/train/run_directory.h>
#include <binade/train/stop_signal.h>
#include <binade/train/trainer_run_internal.h>

#include <chrono>
#include <cmath>

namespace binade::train {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The precision of a model, for the metrics: "fp16", "bf16", else "fp32" or "fp64".
std::string precision_of(const nn::Module& model) {
  const Precision precision = model.precision().value_or(Precision::full());
  if (precision.policy != Precision::kFull) {
    return precision.low == DType::f16 ? "fp16" : "bf16";
  }
  const NamedTensors parameters = model.named_parameters();
  return !parameters.empty() && parameters[0].second.dtype() == DType::f64 ? "fp64" : "fp32";
}

}  // namespace

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
    : parts_(parts),
      options_(std::move(options)),
      ranks_(options_.group),
      display_(options_.progress && ranks_.is_root(), options_.epochs),
      evaluator_(parts_.model, options_.step, ranks_),
      scaler_watch_(parts_.scaler, parts_.optimizer, ranks_, display_),
      divergence_(parts_, options_, ranks_),
      window_(options_.accumulate, 1) {
  state_.applied_before = parts_.optimizer.step_count();
  options_.settings.emplace("mode", kernels::to_string(kernels::math_mode()));
  check_options();
  if (!options_.run.empty()) {
    ranks_.on_root([this] {
      directory_ =
          std::make_unique<RunDirectory>(options_.run, options_.resume, options_.overwrite);
    });
  }
  checkpoints_ = std::make_unique<RunCheckpoints>(parts_, options_, ranks_, directory_.get());
  if (options_.resume) {
    resumed_ = checkpoints_->resume(state_, best_, [this] { go_on_in_full_precision(); });
  }
  if (!options_.run.empty() && ranks_.is_root()) {
    metrics_ = MetricsFile(options_.run + "/metrics.jsonl", state_.epoch, directory_->files());
    open_lens();
  }
  make_data_parallel();
}

TrainerRun::~TrainerRun() = default;

void TrainerRun::check_options() const {
  check(options_.epochs >= 1, "trainer: got epochs ", options_.epochs, ", expected at least 1");
  check(options_.patience >= 0 && options_.checkpoint_every >= 0, "trainer: got patience ",
        options_.patience, " and checkpoint_every ", options_.checkpoint_every,
        ", expected no negative number");
  check(options_.lens >= 0, "trainer: got lens ", options_.lens, ", expected no negative number");
  const std::shared_ptr<Arena> arena = parts_.model.parameters().arena();
  check(options_.lens == 0 || !arena || arena->sharding() == Sharding::none, "trainer: got lens ",
        options_.lens,
        " with sharded parameters, expected whole ones, as the lens looks at all of a moment on "
        "one rank; leave one of them out");
  if (options_.run.empty()) {
    check(options_.lens == 0, "trainer: got lens ", options_.lens,
          " without a run directory, which its file goes to");
    check(!options_.resume && !options_.overwrite, "trainer: got ",
          options_.resume ? "resume" : "overwrite", " without a run directory");
    check(options_.on_nan != OnNan::roll_back,
          "trainer: got OnNan::roll_back without a run directory, whose checkpoints it returns to");
  }
  const auto& [factor, most] = options_.roll_back;
  check(factor > 0 && factor < 1 && most >= 1, "trainer: got roll_back with factor ", factor,
        " and most ", most, ", expected a factor between 0 and 1, and at least one return");
}

// epochs ------------------------------------------------------------------------------------------

void TrainerRun::fit(data::Loader& train, data::Loader* validation) {
  check(!ended_, "trainer: got another fit() after the run ended in epoch ", state_.epoch, " of ",
        options_.epochs,
        ", expected one fit() per run; make a new Trainer to train the model further");
  ranks_.check_loader(train, "training", true);
  check_position(train);
  if (validation) {
    ranks_.check_loader(*validation, "validation", false);
  }
  checkpoints_->check_data(train, validation);
  const StopSignal signal(options_.stop_on_signal);
  const RankSeed seed(ranks_.rank());
  window_ = optim::AccumulationWindow(options_.accumulate, train.options().batch);
  stopped_by_ = 0;
  parts_.optimizer.zero_grad();
  parts_.model.train();
  choose_graph(train);
  checkpoints_->prepare();
  if (options_.on_nan == OnNan::roll_back && state_.steps == 0) {
    save();  // to return to
  }
  while (state_.epoch < options_.epochs && !state_.finished && stopped_by_ == 0) {
    try {
      run_epoch(train, validation, signal);
    } catch (const Diverged& error) {
      roll_back(error, seed);
    } catch (const optim::OverflowAtFloor& error) {
      roll_back(error, seed);
    }
  }
  checkpoints_->wait();
  if (stopped_by_ == 0) {
    divergence_.check_run(state_);
  }
  if (stopped_by_ == 0 && !best_.empty()) {
    parts_.model.load_state(best_);
  }
  ended_ = stopped_by_ == 0;
  write_lens_page();
}

void TrainerRun::run_epoch(data::Loader& train, data::Loader* validation,
                           const StopSignal& signal) {
  const double start = now();
  const int64_t samples_before = state_.samples;
  divergence_.begin_epoch(state_);
  train_epoch(train, signal);
  const int64_t samples = state_.samples - samples_before;
  if (state_.batch == train.batches_per_epoch()) {
    end_epoch(train, validation, now() - start, samples);
  }
}

// Called in a handler: throws the error again unless the options say to go on. All ranks come here,
// or an error of one has ended the job.
void TrainerRun::roll_back(const Error& error, const RankSeed& seed) {
  if (options_.on_nan != OnNan::roll_back) {
    throw;
  }
  const int64_t done = state_.rollbacks, from = state_.steps;
  if (done == options_.roll_back.most) {
    throw Diverged(text(error.what(), "; the run has returned to a checkpoint ", done,
                        done == 1 ? " time already" : " times already"));
  }
  window_.reset();
  parts_.optimizer.zero_grad();
  checkpoints_->wait();
  check(checkpoints_->resume(state_, best_, [this] { go_on_in_full_precision(); }), error.what(),
        "; there is no checkpoint left to return to");
  seed.apply();
  state_.rollbacks = done + 1;
  scale_rates(parts_, state_, std::pow(options_.roll_back.factor, done + 1));
  scaler_watch_.begin_again();
  make_data_parallel();
  if (graph_) {
    make_graph();
  }
  if (directory_) {
    metrics_ = MetricsFile(options_.run + "/metrics.jsonl", state_.epoch, directory_->files());
    open_lens();
  }
  if (ranks_.is_root()) {
    warn(text(error.what(), ": return number ", done + 1, " of at most ", options_.roll_back.most,
              ", from step ", from, " to step ", state_.steps, ", with ", state_.rate_scale,
              " times the learning rate"));
  }
  save();  // a resumed run knows of it
}

// Moves lines of steps that this run writes again to another file.
void TrainerRun::open_lens() {
  if (options_.lens == 0) {
    return;
  }
  lens_.reset();
  const std::string file = options_.run + "/lens.jsonl";
  keep_lens_lines(file, state_.steps, directory_->files());
  lens_ = std::make_unique<Lens>(parts_.model.parameters(), parts_.optimizer,
                                 LensOptions{.every = options_.lens,
                                             .layers = options_.lens_layers,
                                             .file = file,
                                             .files = &directory_->files(),
                                             .append = resumed_ || state_.rollbacks > 0});
}

void TrainerRun::write_lens_page() const {
  if (lens_) {
    write_file_durably(options_.run + "/lens.html",
                       to_html(read_lens(options_.run + "/lens.jsonl", directory_->files())),
                       directory_->files());
  }
}

void TrainerRun::train_epoch(data::Loader& loader, const StopSignal& signal) {
  const double start = now(), interval = display_.is_live() ? 0.5 : 10;
  const int64_t samples_before = state_.samples;
  double shown = start;
  const int64_t batches = loader.batches_per_epoch();
  loader.epoch(state_.epoch, state_.batch);
  data::Batch batch;
  while (loader.next(batch)) {
    const bool last = ++state_.batch == batches;
    const bool stepped = train_batch(batch, last);
    const bool stops = stepped && asked_to_stop(signal);
    const bool due = options_.checkpoint_every > 0 && state_.steps % options_.checkpoint_every == 0;
    if (stepped && !last && (due || stops)) {
      scaler_watch_.ask(state_.steps);
      divergence_.check(state_);
      follow_floor();
      save();
    }
    if (stops) {
      return;
    }
    if (now() - shown > interval) {
      shown = now();
      scaler_watch_.ask(state_.steps);
      show_progress(loader, shown - start, state_.samples - samples_before);
    }
  }
}

EpochMetrics TrainerRun::metrics_of_epoch(const data::Loader& train, double seconds,
                                          int64_t samples) const {
  EpochMetrics m;
  m.epoch = state_.epoch;
  m.train_loss = mean_loss();
  m.samples_per_second = static_cast<double>(samples) / std::max(seconds, 1e-9);
  m.learning_rate = parts_.optimizer.lr();
  m.loss_scale = parts_.scaler ? parts_.scaler->scale() : 1;
  m.skipped_steps = state_.skipped(parts_.optimizer);
  m.precision = precision_of(parts_.model);
  m.mode = kernels::to_string(kernels::math_mode());
  m.augment = options_.augment_note;
  m.workers = train.stats().workers;
  m.decode_errors = train.stats().decode_errors;
  m.state_hash = hash_of_state();
  return m;
}

void TrainerRun::end_epoch(data::Loader& train, data::Loader* validation, double seconds,
                           int64_t samples) {
  scaler_watch_.ask(state_.steps);  // its error names the samples
  divergence_.check(state_);
  divergence_.check_epoch(state_);
  follow_floor();
  agree();
  EpochMetrics m = metrics_of_epoch(train, seconds, samples);
  ++state_.epoch;
  state_.batch = 0;
  state_.loss = RunningLoss();
  state_.samples = 0;
  bool best = false;
  if (validation) {
    const Evaluation evaluation = validate(*validation);
    m.validation_loss = evaluation.loss;
    m.validation_accuracy = evaluation.accuracy;
    divergence_.check_validation_loss(evaluation.loss, m.epoch);
    best = improved(evaluation.loss);
    m.decode_errors += validation->stats().decode_errors;
  }
  m.decode_errors = static_cast<int64_t>(ranks_.sum({static_cast<double>(m.decode_errors)})[0]);
  if (parts_.plateau) {
    parts_.plateau->advance(m.validation_loss.value_or(m.train_loss));
  }
  metrics_.add(m);
  display_.epoch(m, scaler_watch_.skipped_words(state_));
  if (best) {
    checkpoints_->save_best(state_, best_);
  }
  save();
}

bool TrainerRun::improved(double loss) {
  if (!std::isnan(loss) && (state_.best_epoch < 0 || loss < state_.best_loss)) {
    state_.best_loss = loss;
    state_.best_epoch = state_.epoch - 1;
    state_.bad_epochs = 0;
    best_ = copies(parts_.model.state());
    return true;
  }
  ++state_.bad_epochs;
  state_.finished = options_.patience > 0 && state_.bad_epochs >= options_.patience;
  return false;
}

Evaluation TrainerRun::validate(data::Loader& loader) {
  ranks_.check_loader(loader, "validation", false);
  agree();
  return evaluator_.validate(loader);
}

Evaluation TrainerRun::test(data::Loader& loader) {
  const Evaluation result = validate(loader);
  if (result.accuracy) {
    metrics_.set_test_accuracy(*result.accuracy);
  }
  return result;
}

void TrainerRun::save_model() {
  check(!options_.run.empty(), "trainer: got save_model() without a run directory to write to");
  ranks_.on_root([this] {
    save_tensors(options_.run + "/model.safetensors", parts_.model.state(), {},
                 directory_->files());
  });
}

void TrainerRun::save() {
  if (!options_.run.empty()) {
    agree();
    checkpoints_->save(state_);
  }
}

std::string TrainerRun::hash_of_state() const {
  NamedTensors all = parts_.model.state();
  for (auto& entry : parts_.optimizer.state_tensors()) {
    all.push_back(std::move(entry));
  }
  return ranks_.is_root() ? state_hash(all) : std::string();
}

// Between calls of agree() it is an estimate from this rank's share.
double TrainerRun::mean_loss() const {
  return state_.loss.total() * ranks_.count() /
         static_cast<double>(std::max<int64_t>(state_.samples, 1));
}

void TrainerRun::show_progress(const data::Loader& loader, double seconds, int64_t samples) const {
  if (!display_.is_live()) {
    return;
  }
  display_.progress(loader, {.epoch = state_.epoch,
                             .batch = state_.batch,
                             .loss = mean_loss(),
                             .lr = parts_.optimizer.lr(),
                             .scale = parts_.scaler ? parts_.scaler->scale() : 1.0,
                             .skipped = scaler_watch_.skipped_words(state_),
                             .seconds = seconds,
                             .samples = samples});
}

// ranks -------------------------------------------------------------------------------------------

// In the middle of an epoch the position counts batches of all ranks.
void TrainerRun::check_position(const data::Loader& train) {
  const int64_t batch = train.options().batch * ranks_.count();
  check(state_.batch == 0 || state_.global_batch == 0 || state_.global_batch == batch,
        "resume: got ", ranks_.count(), " ranks with batches of ", train.options().batch,
        ", but epoch ", state_.epoch + 1, " was begun with ", state_.global_batch,
        " samples per batch of all ranks; choose the batch so that the product is the same");
  state_.global_batch = batch;
}

void TrainerRun::make_data_parallel() {
  data_parallel_.reset();
  if (!ranks_.alone()) {
    data_parallel_ = std::make_unique<dist::DistributedDataParallel>(
        *ranks_.group(), parts_.model.parameters(), options_.data_parallel);
  }
}

// Every rank gets the mean of the running statistics, and its share of the sum of losses, so that a
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
  state_.loss = RunningLoss(ranks_.sum({state_.loss.total()})[0] / ranks_.count());
  apart_ = false;
}

bool TrainerRun::asked_to_stop(const StopSignal& signal) {
  if (options_.stop_on_signal) {
    stopped_by_ = static_cast<int>(ranks_.largest(signal.noted()));
  }
  return stopped_by_ != 0;
}

// steps -------------------------------------------------------------------------------------------
//
// Nothing here waits for a device: the optimizer counts the outcome of a step on the device, and
// the schedule advances there.

// Returns true if the batch completed a step.
bool TrainerRun::train_batch(const data::Batch& batch, bool last) {
  const double weight = window_.add(batch.size);
  if (last) {
    window_.close();
  }
  scaler_watch_.begin_step(batch, window_.full());
  if (window_.samples() == batch.size) {
    divergence_.begin_step();
  }
  optim::StepResult result = StepOutcome::accumulating;
  const bool full = batch.size == window_.nominal_batch();
  const bool looks = lens_ && lens_->looks_at(state_.steps);
  if (looks && window_.samples() == batch.size) {
    lens_->begin(state_.steps);
  }
  const Tensor loss =
      graph_ && full && !looks ? run_graph(batch, result) : run_batch(batch, weight, result);
  state_.loss.add(loss, static_cast<double>(batch.size), state_.steps);
  divergence_.check_read_losses(state_);
  state_.samples += batch.size * ranks_.count();
  apart_ = !ranks_.alone();
  if (!window_.full()) {
    return false;
  }
  window_.reset();
  ++state_.steps;
  divergence_.end_step(result, state_.steps - 1);
  if (ranks_.group()) {
    ranks_.group()->set_step(state_.steps);
  }
  if (parts_.schedule) {
    parts_.schedule->advance(result);
  }
  if (scaler_watch_.end_step(state_.steps)) {
    follow_floor();
  }
  return true;
}

Tensor TrainerRun::run_batch(const data::Batch& batch, double weight, optim::StepResult& result) {
  if (data_parallel_) {
    data_parallel_->set_reduce(window_.full());
  }
  const Generator random = generator();
  const Tensor loss =
      (options_.step ? options_.step : TrainingStep(classification_step))(parts_.model, batch).loss;
  check_mean_loss("training", loss);
  const Tensor checked = divergence_.check_loss(loss, batch, random, state_.steps);
  if (parts_.scaler) {
    parts_.scaler->scale(checked, weight).backward();
  } else {
    backward(checked, full(loss.sizes(), weight, loss.dtype(), loss.device()));
  }
  if (window_.full()) {
    if (data_parallel_) {
      data_parallel_->finish();
    }
    if (lens_) {
      lens_->before_update();
    }
    result = step();
    if (lens_) {
      lens_->end();
    }
  }
  return loss.detach();
}

optim::StepResult TrainerRun::step() {
  const optim::StepOptions options{.divisor = window_.divisor(),
                                   .clip_norm = options_.clip_norm,
                                   .check_finite = divergence_.checks_gradients()};
  try {
    return parts_.scaler ? parts_.scaler->step(parts_.optimizer, options)
                         : parts_.optimizer.step(options);
  } catch (optim::OverflowAtFloor& error) {
    scaler_watch_.name_samples(error, state_.steps);
    throw;
  }
}

// A batch that is a whole step, as a graph.
Tensor TrainerRun::run_graph(const data::Batch& batch, optim::StepResult& result) {
  std::vector<Tensor> out;
  try {
    out = (*graph_)({batch.images, batch.labels});
  } catch (const Error& error) {
    // Nothing ran on the device. If the step itself is wrong, it throws again now.
    give_up_graph(error.what());
    parts_.optimizer.zero_grad();
    return run_batch(batch, 1, result);
  }
  result = optim::StepResult(out[1], nullptr);
  return out[0];
}

void TrainerRun::choose_graph(const data::Loader& train) {
  graph_.reset();
  why_no_graph_.clear();
  const Device device = parts_.optimizer.device();
  if (device.is_cpu() || options_.graph == StepGraph::off) {
    why_no_graph_ = device.is_cpu() ? "on the CPU there are none" : "they are switched off";
    return;
  }
  if (!ranks_.alone()) {
    give_up_graph("ranks average their gradients, and the host takes part in that");
    return;
  }
  if (options_.accumulate > 1) {
    give_up_graph(text("gradients accumulate over ", options_.accumulate, " micro-batches"));
    return;
  }
  if (options_.step && options_.graph == StepGraph::automatic) {
    give_up_graph("the step is not the Trainer's own; StepGraph::on says that it may be replayed");
    return;
  }
  if (train.samples_per_epoch() < train.options().batch) {
    give_up_graph("no batch is full");
    return;
  }
  make_graph();
}

void TrainerRun::make_graph() {
  graph_ =
      std::make_unique<GraphedStep>(parts_.optimizer.device(), [this](std::span<const Tensor> in) {
        data::Batch batch;
        batch.images = in[0];
        batch.labels = in[1];
        batch.size = in[0].size(0);
        optim::StepResult result = StepOutcome::accumulating;
        const Tensor loss = run_batch(batch, 1, result);
        return std::vector<Tensor>{loss, result.device_outcome()};
      });
}

void TrainerRun::give_up_graph(const std::string& reason) {
  graph_.reset();
  why_no_graph_ = reason;
  display_.note("steps are not replayed as a graph: " + reason);
}

void TrainerRun::follow_floor() {
  if (scaler_watch_.wants_full_precision(state_.steps)) {
    go_on_in_full_precision();
  }
}

void TrainerRun::go_on_in_full_precision() {
  parts_.model.to_full_precision();
  if (data_parallel_) {
    make_data_parallel();
  }
  scaler_watch_.begin_full_precision();
  state_.full_precision = true;
  if (graph_) {
    make_graph();
  }
}

}  // namespace binade::train
