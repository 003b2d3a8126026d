#include <binade/core/io/file_system.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/math_mode.h>
#include <binade/train/checkpoint_store.h>
#include <binade/train/lens_report.h>
#include <binade/train/model_file.h>
#include <binade/train/stop_signal.h>
#include <binade/train/trainer_run_internal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>

namespace binade::train {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

NamedTensors copies(const NamedTensors& tensors) {
  NoGradGuard guard;
  NamedTensors out;
  for (const auto& [name, tensor] : tensors) {
    Tensor copy = empty_like(tensor);
    copy.copy_(tensor.detach());
    out.emplace_back(name, std::move(copy));
  }
  return out;
}

int64_t count_correct(const Tensor& logits, const Tensor& labels) {
  const Tensor predicted = argmax(logits, 1).to(Device{}), expected = labels.to(Device{});
  int64_t correct = 0;
  for (int64_t i = 0; i < labels.numel(); ++i) {
    correct += predicted.data<int64_t>()[i] == expected.data<int64_t>()[i];
  }
  return correct;
}

// Puts a model into evaluation mode, and back.
class EvaluationMode {
 public:
  explicit EvaluationMode(nn::Module& model) : model_(model), before_(model.training_modes()) {
    model_.eval();
  }
  ~EvaluationMode() { model_.set_training_modes(before_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  nn::Module& model_;
  std::vector<bool> before_;
  NoGradGuard no_grad_;
};

// Ranks draw different random numbers while they train, as for dropout; rank 0 those of a run
// alone, so that its generator is what a checkpoint holds.
class RankSeed {
 public:
  explicit RankSeed(int rank) : change_(static_cast<uint64_t>(rank) * 0x9E3779B97F4A7C15U) {
    generator().seed ^= change_;
  }
  ~RankSeed() { generator().seed ^= change_; }
  RankSeed(const RankSeed&) = delete;
  RankSeed& operator=(const RankSeed&) = delete;

 private:
  uint64_t change_;
};

}  // namespace

TrainerRun::TrainerRun(const TrainingParts& parts, TrainerOptions options)
    : parts_(parts),
      options_(std::move(options)),
      ranks_(options_.group),
      window_(options_.accumulate, 1),
      applied_before_(parts_.optimizer.step_count()) {
  check(options_.epochs >= 1, "trainer: got epochs ", options_.epochs, ", expected at least 1");
  check(options_.patience >= 0 && options_.checkpoint_every >= 0, "trainer: got patience ",
        options_.patience, " and checkpoint_every ", options_.checkpoint_every,
        ", expected no negative number");
  check(options_.lens >= 0, "trainer: got lens ", options_.lens, ", expected no negative number");
  options_.settings.emplace("mode", kernels::to_string(kernels::math_mode()));
  const ParameterList parameters = parts_.model.parameters();
  check(
      options_.lens == 0 || !parameters.arena() || parameters.arena()->sharding() == Sharding::none,
      "trainer: got lens ", options_.lens,
      " with sharded parameters, expected whole ones, as the "
      "lens looks at all of a moment on one rank; leave one of them out");
  options_.progress = options_.progress && ranks_.is_root();
  if (options_.run.empty()) {
    check(options_.lens == 0, "trainer: got lens ", options_.lens,
          " without a run directory, which its file goes to");
    check(!options_.resume, "trainer: got resume without a run directory");
  } else if (ranks_.is_root()) {
    store_ = std::make_unique<CheckpointStore>(options_.run);
  }
  if (options_.resume) {
    resume();
  }
  if (store_) {
    metrics_ = MetricsFile(options_.run + "/metrics.jsonl", state_.epoch);
    open_lens();
  }
  make_data_parallel();
}

TrainerRun::~TrainerRun() = default;

void TrainerRun::fit(data::Loader& train, data::Loader* validation) {
  check_loader(train, "training", true);
  check_position(train);
  if (validation) {
    check_loader(*validation, "validation", false);
  }
  const StopSignal signal(options_.stop_on_signal);
  const RankSeed seed(ranks_.rank());
  window_ = optim::AccumulationWindow(options_.accumulate, train.options().batch);
  stopped_by_ = 0;
  parts_.optimizer.zero_grad();
  parts_.model.train();
  choose_graph(train);
  while (state_.epoch < options_.epochs && !state_.finished && stopped_by_ == 0) {
    const double start = now();
    const int64_t samples_before = state_.samples;
    train_epoch(train, signal);
    const int64_t samples = state_.samples - samples_before;
    if (state_.batch == train.batches_per_epoch()) {
      end_epoch(train, validation, now() - start, samples);
    }
  }
  if (stopped_by_ == 0) {
    restore_best();
  }
  write_lens_page();
}

// Lines of steps that a resumed run repeats are dropped.
void TrainerRun::open_lens() {
  if (options_.lens == 0) {
    return;
  }
  const std::string file = options_.run + "/lens.jsonl";
  if (resumed_) {
    keep_lens_lines(file, state_.steps);
  }
  lens_ = std::make_unique<Lens>(parts_.model.parameters(), parts_.optimizer,
                                 LensOptions{.every = options_.lens,
                                             .layers = options_.lens_layers,
                                             .file = file,
                                             .append = resumed_});
}

void TrainerRun::write_lens_page() const {
  if (lens_) {
    write_file_durably(options_.run + "/lens.html",
                       to_html(read_lens(options_.run + "/lens.jsonl")));
  }
}

void TrainerRun::train_epoch(data::Loader& loader, const StopSignal& signal) {
  const double start = now(), interval = shows_progress() ? 0.5 : 10;
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
      check_scaler();
      follow_floor();
      save();
    }
    if (stops) {
      return;
    }
    if (now() - shown > interval) {
      shown = now();
      check_scaler();
      show_progress(loader, shown - start, state_.samples - samples_before);
    }
  }
}

void TrainerRun::end_epoch(data::Loader& train, data::Loader* validation, double seconds,
                           int64_t samples) {
  check_scaler();
  follow_floor();
  agree();
  EpochMetrics m;
  m.epoch = state_.epoch;
  m.train_loss = loss_of_all() / static_cast<double>(std::max<int64_t>(state_.samples, 1));
  m.samples_per_second = static_cast<double>(samples) / std::max(seconds, 1e-9);
  m.learning_rate = parts_.optimizer.lr();
  m.loss_scale = parts_.scaler ? parts_.scaler->scale() : 1;
  m.skipped_steps = skipped();
  m.precision = full_precision_ ? "fp32" : options_.precision;
  m.mode = kernels::to_string(kernels::math_mode());
  m.augment = options_.augment;
  m.workers = train.stats().workers;
  m.decode_errors = train.stats().decode_errors;
  m.state_hash = hash_of_state();
  ++state_.epoch;
  state_.batch = 0;
  state_.loss = RunningLoss();
  state_.samples = 0;
  bool best = false;
  if (validation) {
    const Evaluation evaluation = validate(*validation);
    m.validation_loss = evaluation.loss;
    m.validation_accuracy = evaluation.accuracy;
    best = improved(evaluation.loss);
    m.decode_errors += validation->stats().decode_errors;
  }
  m.decode_errors = static_cast<int64_t>(ranks_.sum({static_cast<double>(m.decode_errors)})[0]);
  if (parts_.plateau) {
    parts_.plateau->advance(m.validation_loss.value_or(m.train_loss));
  }
  metrics_.add(m);
  show_epoch(m);
  if (best && !options_.run.empty()) {
    const NamedTensors optimizer_state = parts_.optimizer.state_tensors();
    if (store_) {
      store_->save_best(state_.steps, files(best_, optimizer_state), fields());
    }
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

void TrainerRun::restore_best() {
  if (!best_.empty()) {
    parts_.model.load_state(best_);
  }
}

Evaluation TrainerRun::validate(data::Loader& loader) {
  check_loader(loader, "validation", false);
  agree();
  EvaluationMode mode(parts_.model);
  Evaluation result;
  loader.epoch(0);
  data::Batch batch;
  RunningLoss loss;
  int64_t correct = 0;
  while (loader.next(batch)) {
    const Tensor logits = parts_.model(batch.images);
    loss.add(cross_entropy(logits, batch.labels), static_cast<double>(batch.size));
    correct += count_correct(logits, batch.labels);
    result.samples += batch.size;
  }
  const std::vector<double> all =
      ranks_.sum({loss.total(), static_cast<double>(correct), static_cast<double>(result.samples)});
  check(all[2] > 0, "trainer: got no samples to evaluate on");
  return {.loss = all[0] / all[2],
          .accuracy = all[1] / all[2],
          .samples = static_cast<int64_t>(all[2])};
}

Evaluation TrainerRun::test(data::Loader& loader) {
  const Evaluation result = validate(loader);
  metrics_.set_test_accuracy(result.accuracy);
  return result;
}

std::vector<int64_t> TrainerRun::predict(const Tensor& images) {
  EvaluationMode mode(parts_.model);
  const Tensor classes = argmax(parts_.model(images.to(parts_.model.device())), 1).to(Device{});
  return {classes.data<int64_t>(), classes.data<int64_t>() + classes.numel()};
}

std::string TrainerRun::hash_of_state() const {
  NamedTensors all = parts_.model.state();
  for (auto& entry : parts_.optimizer.state_tensors()) {
    all.push_back(std::move(entry));
  }
  return ranks_.is_root() ? state_hash(all) : std::string();
}

bool TrainerRun::shows_progress() const { return options_.progress && isatty(STDERR_FILENO) != 0; }

void TrainerRun::show_progress(const data::Loader& loader, double seconds, int64_t samples) const {
  if (!shows_progress()) {
    return;
  }
  const data::LoaderStats stats = loader.stats();
  std::fprintf(
      stderr,
      "\repoch %lld/%lld  %5.1f%%  loss %.4f  lr %.2e  scale %g  skipped %s  %.0f samples/s  "
      "stalled %.0f%% ",
      static_cast<long long>(state_.epoch + 1), static_cast<long long>(options_.epochs),
      100.0 * static_cast<double>(state_.batch) / static_cast<double>(loader.batches_per_epoch()),
      loss_of_all() / static_cast<double>(state_.samples), parts_.optimizer.lr(),
      parts_.scaler ? parts_.scaler->scale() : 1.0, skipped_words().c_str(),
      static_cast<double>(samples) / seconds,
      100 * stats.wait_seconds / std::max(stats.total_seconds, 1e-9));
  std::fflush(stderr);
}

void TrainerRun::show_epoch(const EpochMetrics& m) const {
  if (!options_.progress) {
    return;
  }
  std::string validation;
  if (m.validation_loss) {
    char buffer[80];
    std::snprintf(buffer, sizeof buffer, "  validation loss %.4f  accuracy %.2f%%",
                  *m.validation_loss, 100 * *m.validation_accuracy);
    validation = buffer;
  }
  if (isatty(STDERR_FILENO) != 0) {
    std::fprintf(stderr, "\r\033[K");
  }
  std::printf("epoch %lld/%lld  loss %.4f%s  lr %.2e  scale %g  skipped %s  %.0f samples/s\n",
              static_cast<long long>(m.epoch + 1), static_cast<long long>(options_.epochs),
              m.train_loss, validation.c_str(), m.learning_rate, m.loss_scale,
              skipped_words().c_str(), m.samples_per_second);
  std::fflush(stdout);
}

}  // namespace binade::train
