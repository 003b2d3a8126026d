// Trains an image classifier from files to accuracy, in mixed precision unless told otherwise.
// Without --data it draws its own images. `train_classifier --help` lists the flags. On several
// processes, under `binade launch -n 2` or mpirun, each takes --batch samples per step.
#include <binade/binade.h>
#include <binade/core/io/program_streams.h>
#include <binade/kernels/base/printable.h>
#include <binade/train/finders/batch_finder.h>
#include <binade/train/finders/noise_scale.h>
#include <binade/train/finders/worker_tuner.h>
#include <binade/train/precision/precision_search.h>
#include <unistd.h>

#include <cstdio>

#include "train_classifier_settings.h"

using namespace binade;
using namespace classifier;

namespace {

std::unique_ptr<optim::Optimizer> make_optimizer(const Flags& f, const ParameterList& list) {
  const double decay = std::max(f.weight_decay, 0.0);
  const double decoupled = f.weight_decay < 0 ? 0.01 : f.weight_decay;
  if (f.optimizer == "adamw") {
    return std::make_unique<optim::AdamW>(
        list, optim::AdamWOptions{.lr = f.lr, .weight_decay = decoupled});
  }
  if (f.optimizer == "lamb") {
    return std::make_unique<optim::LAMB>(list,
                                         optim::LAMBOptions{.lr = f.lr, .weight_decay = decoupled});
  }
  if (f.optimizer == "adam") {
    return std::make_unique<optim::Adam>(list,
                                         optim::AdamOptions{.lr = f.lr, .weight_decay = decay});
  }
  if (f.optimizer == "rmsprop") {
    return std::make_unique<optim::RMSprop>(
        list,
        optim::RMSpropOptions{
            .lr = f.lr, .weight_decay = decay, .momentum = f.momentum_given ? f.momentum : 0});
  }
  if (f.optimizer == "adagrad") {
    return std::make_unique<optim::Adagrad>(
        list, optim::AdagradOptions{.lr = f.lr, .weight_decay = decay});
  }
  if (f.optimizer == "lars") {
    return std::make_unique<optim::LARS>(
        list, optim::LARSOptions{.lr = f.lr,
                                 .momentum = f.momentum,
                                 .weight_decay = f.weight_decay < 0 ? 1e-4 : f.weight_decay});
  }
  return std::make_unique<optim::SGD>(
      list, optim::SGDOptions{.lr = f.lr, .momentum = f.momentum, .weight_decay = decay});
}

std::optional<optim::Schedule> make_schedule(const Flags& f, optim::Optimizer& optimizer,
                                             int64_t total) {
  if (f.schedule == "plateau") {
    return std::nullopt;
  }
  if (f.schedule == "cosine") {
    return optim::WarmupCosine(optimizer,
                               {.warmup = std::min<int64_t>(500, total / 10), .total = total});
  }
  if (f.schedule == "one-cycle") {
    return optim::OneCycleLR(
        optimizer,
        {.max_lr = f.lr, .total_steps = total, .cycle_momentum = optimizer.has_momentum()});
  }
  if (f.schedule == "linear") {
    return optim::LinearLR(optimizer, {.start_factor = 1, .end_factor = 0, .total_iters = total});
  }
  return f.schedule == "step" ? optim::Schedule(optim::StepLR(
                                    optimizer, {.step_size = std::max<int64_t>(total / 3, 1)}))
                              : optim::Schedule(optim::Constant(optimizer));
}

// Prints the sizes of parameters, gradients and optimizer states in this process.
void announce_shards(const Flags& f, const ParameterList& parameters,
                     const optim::Optimizer& optimizer) {
  const int64_t bytes = parameters.arena()->bytes() + optimizer.state_bytes();
  std::printf("ZeRO-%d: %.1f MB of weights, gradients and states per rank\n", f.zero,
              static_cast<double>(bytes) / 1e6);
}

void announce(const Flags& f, const nn::Module& model, const Device& device,
              const train::Trainer& trainer, const dist::World& world) {
  std::printf("%s, %lld parameters, %s, on %s, data %s, run directory %s", f.model.c_str(),
              static_cast<long long>(model.parameter_count()), to_string(precision_of(f)).c_str(),
              describe(device).c_str(), printable(f.data).c_str(), printable(f.run).c_str());
  if (world.size() > 1) {
    std::printf(", %d ranks x batch %lld = %lld", world.size(), static_cast<long long>(f.batch),
                static_cast<long long>(f.batch * world.size()));
  }
  if (trainer.resumed()) {
    std::printf(", resumed in epoch %lld after step %lld",
                static_cast<long long>(trainer.epoch() + 1),
                static_cast<long long>(trainer.steps()));
  } else if (f.resume) {
    std::printf(", nothing to resume: starting fresh");
  }
  std::printf("\n%s", f.explain ? model.explain_precision().c_str() : "");
  std::fflush(stdout);
}

// Reports that a run was ended by a signal and how to continue it.
int report_stop(const Flags& f, const train::Trainer& trainer, const dist::World& world) {
  world.log(text("stopped by signal ", trainer.stopped_by(), " after step ", trainer.steps(),
                 "; --run ", printable(f.run), " --resume continues"));
  return 128 + trainer.stopped_by();
}

void report_results(const Flags& f, const train::ClassifierData& data,
                    const std::vector<Tensor>& pictures, train::Trainer& trainer, double accuracy) {
  for (size_t i = 0; i < pictures.size(); ++i) {
    const auto label = static_cast<size_t>(trainer.predict(pictures[i]).at(0));
    std::printf("%s: %s\n", printable(f.predict[i]).c_str(),
                printable(data.class_names[label]).c_str());
  }
  std::printf("test accuracy: %.2f%%\n", 100 * accuracy);
}

// Saves the classifier for samples/predict.cpp, which reads no training data.
void save_for_predict(const Flags& f, const train::ClassifierData& data, const nn::Module& model,
                      const dist::World& world) {
  if (!world.is_root()) {
    return;
  }
  train::save_classifier(f.run + "/classifier.safetensors", model,
                         {.model = f.model,
                          .class_names = data.class_names,
                          .channels = data.channels,
                          .height = data.height,
                          .width = data.width,
                          .mean = data.mean,
                          .deviation = data.deviation});
}

// Runs fit(), with a profile if --profile asks for one.
void fit(const Flags& f, const train::ClassifierData& data, train::Trainer& trainer,
         const dist::World& world) {
  const auto profiler = train::profile_run(f.profile, f.run, world.rank());
  trainer.fit(*data.train, data.validation.get());
  train::finish_profile(profiler.get(), f.run);
}

train::OnNan on_nan_of(const Flags& f) {
  return f.on_nan == "skip"        ? train::OnNan::skip
         : f.on_nan == "roll-back" ? train::OnNan::roll_back
         : f.on_nan == "ignore"    ? train::OnNan::ignore
                                   : train::OnNan::error;
}

// --ledger: observes the first step of the run and prints its table.
class FirstStepLedger {
 public:
  explicit FirstStepLedger(bool on) : on_(on) {}
  train::Callbacks callbacks() {
    train::Callbacks calls;
    if (on_) {
      calls.train_start = [this](const train::RunView&) { ledger_.emplace(); };
      calls.step = [this](const train::RunView&) { print(); };
    }
    return calls;
  }

 private:
  void print() {
    if (ledger_) {
      const std::string table = ledger_->table();
      ledger_.reset();
      std::fputs(table.c_str(), stdout);
    }
  }
  bool on_;
  std::optional<PrecisionLedger> ledger_;
};

train::TrainerOptions trainer_options(const Flags& f, const train::ClassifierData& data,
                                      dist::World& world, FirstStepLedger& ledger) {
  train::TrainerOptions options{
      .epochs = f.epochs,
      .accumulate = f.accumulate,
      .clip_norm = f.clip > 0 ? std::optional(f.clip) : std::nullopt,
      .patience = f.patience,
      .run = f.run,
      .resume = f.resume,
      .overwrite = f.overwrite,
      .force = f.force,
      .checkpoint_every = f.checkpoint_every,
      .async_save = f.async_save,
      .callbacks = {ledger.callbacks()},
      .log_every = f.log_every,
      .log_norms = f.log_norms,
      .graph = f.graph == "off" ? train::StepGraph::off : train::StepGraph::automatic,
      .on_nan = on_nan_of(f),
      .roll_back = {.factor = f.rollback_factor, .most = f.rollbacks},
      .lens = f.lens,
      .lens_layers = f.lens_layers,
      .report = !f.no_report,
      .record_gradients = f.record_gradients,
      .shadow = f.shadow,
      .black_box = {.bytes = f.black_box << 20,
                    .description = {{"model", f.model},
                                    {"channels", text(data.channels)},
                                    {"height", text(data.height)},
                                    {"width", text(data.width)},
                                    {"classes", text(data.class_names.size())}}},
      .group = &world.communicator(),
      .stop_on_signal = true,
      .settings = settings_of(f, data, world),
      .notes = {{"augment", train::to_string(data.augment)}}};
  f.formats.apply_to(options, static_cast<uint64_t>(f.seed));
  add_settings(f.formats, options.settings);
  if (f.workers == "auto" && data.pool) {
    options.callbacks.push_back(train::WorkerTuner(data.pool).callbacks());
  }
  return options;
}

// Runs a finder and prints what it found.
int find(const Flags& f, const train::ClassifierData& data, train::FinderParts parts) {
  parts.clip_norm = f.clip > 0 ? std::optional(f.clip) : std::nullopt;
  if (f.find == "batch") {
    const train::FoundBatch found = train::find_batch(parts, *data.train);
    std::fputs(train::to_string(found).c_str(), stdout);
    return found.batch > 0 ? 0 : kError;
  }
  if (f.find == "lr") {
    const train::FoundRate found = train::find_rate(parts, *data.train);
    write_file_durably("lr-finder.html", train::to_html(found));
    std::printf("%slr-finder.html\n", train::to_string(found).c_str());
    return found.rate > 0 ? 0 : kError;
  }
  if (f.find == "noise") {
    std::fputs(train::to_string(train::measure_noise_scale(parts, *data.train)).c_str(), stdout);
    return 0;
  }
  const auto batches = train::BatchMaker::largest(*data.train);
  const auto model = train::measure_memory(parts, batches, std::max<int64_t>(f.batch / 4, 1));
  std::printf("%s\n", train::to_string(model.at(f.batch)).c_str());
  return 0;
}

// --find-f32: looks for modules that must stay in f32, with the trained weights.
void find_modules_in_f32(const Flags& f, const train::ClassifierData& data, nn::Module& model,
                         const optim::LossScaler* scaler) {
  if (f.find_f32 == 0) {
    return;
  }
  constexpr size_t kBatches = 8;
  std::vector<train::StepBatch> batches;
  for (const data::Batch& batch : *data.train) {
    batches.push_back({batch.to(model.device()), 1, generator()});
    if (batches.size() == kBatches) {
      break;
    }
  }
  model.train();
  const train::TrainingStep step = train::classification_step;
  const train::FoundPrecision found =
      train::find_f32({.model = model,
                       .step = step,
                       .parameters = model.parameters(),
                       .batches = std::move(batches),
                       .scale = scaler ? scaler->scale() : 1,
                       .stale = {}},
                      {.loss_difference = f.find_f32, .seed = static_cast<uint64_t>(f.seed)});
  write_file_durably(f.run + "/f32-rules.json", train::to_rules(found));
  std::printf("%s%s/f32-rules.json\n", train::to_text(found).c_str(), printable(f.run).c_str());
}

int report_error(const std::exception& error, int status) {
  std::fputs(isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "", stderr);  // clears the progress line
  print_error(error);
  return status;
}

void check_ranks(const Flags& f, const dist::World& world) {
  check((f.find == "none" && f.find_f32 == 0) || world.size() == 1,
        f.find_f32 > 0 ? "--find-f32" : "--find", ": got ", world.size(),
        " processes, expected one");
  check(world.size() > 1 || (f.zero == 0 && !f.sync_batch_norm),
        "--zero, --sync-batch-norm: got "
        "one process, expected several; start them with binade launch -n N or mpirun -np N");
}

void choose_run(Flags& f, dist::World& world) {
  if (f.run.empty() && f.find == "none") {
    f.run =
        dist::broadcast_text(world.communicator(), train::fresh_run_directory("runs/" + f.model));
  }
}

// Errors in the input are found before the run directory is touched. Returns the exit status.
int run(Flags f) {
  set_threads(f.threads);
  dist::World world;
  check_ranks(f, world);
  const Device device = device_of(f, world);
  std::optional<optim::LossScaler> scaler = make_scaler(f);
  workers(f, world);
  f.lr = scaled_lr(f, world);
  choose_run(f, world);
  if (f.data.empty()) {
    draw_data(f, world);
  }
  const train::ClassifierData data = open_data(f, world);
  std::vector<Tensor> pictures;
  for (const std::string& file : f.predict) {
    pictures.push_back(data.read_image(file));
  }

  manual_seed(static_cast<uint64_t>(f.seed));
  auto model = nn::make_model(
      f.model, {data.channels, data.height, data.width, int64_t(data.class_names.size())});
  model->to(device, precision_of(f));
  if (f.zero > 0) {
    model->parameters().shard(world.communicator(),
                              f.zero == 1 ? Sharding::states : Sharding::gradients);
  }
  if (f.sync_batch_norm) {
    model->synchronize_batch_norms(&world.communicator());
  }
  auto optimizer = make_optimizer(f, model->parameters());
  if (f.find != "none") {
    return find(f, data, {*model, *optimizer, scaler ? &*scaler : nullptr});
  }
  const int64_t steps_per_epoch =
      (data.train->batches_per_epoch() + f.accumulate - 1) / f.accumulate;
  auto schedule = make_schedule(f, *optimizer, f.epochs * steps_per_epoch);
  FirstStepLedger ledger(f.ledger && world.is_root());
  optim::ReduceLROnPlateau plateau(*optimizer, {.factor = 0.1, .patience = 2});
  train::Trainer trainer({*model, *optimizer, scaler ? &*scaler : nullptr,
                          schedule ? &*schedule : nullptr, schedule ? nullptr : &plateau},
                         trainer_options(f, data, world, ledger));
  if (world.is_root()) {
    announce(f, *model, device, trainer, world);
    if (f.zero > 0) {
      announce_shards(f, model->parameters(), *optimizer);
    }
  }
  fit(f, data, trainer, world);
  if (trainer.stopped_by() != 0) {
    return report_stop(f, trainer, world);
  }
  trainer.save_model();
  save_for_predict(f, data, *model, world);
  const train::Evaluation test = trainer.test(*data.test);
  if (world.is_root()) {
    report_results(f, data, pictures, trainer, test["accuracy"]);
    find_modules_in_f32(f, data, *model, scaler ? &*scaler : nullptr);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const ProgramStreams streams;
  Flags flags;
  CLI::App app("Trains an image classifier.");
  add_flags(app, flags);
  add_format_flags(app, flags.formats);
  try {
    app.parse(argc, argv);
    check_combinations(app, flags);
    if (app.get_option("--profile")->count() > 0) {
      flags.profile = flags.profile.empty() ? train::kDefaultProfileWindow : flags.profile;
      train::parse_profile_window(flags.profile);
    }
    flags.momentum_given = app.get_option("--momentum")->count() > 0;
  } catch (const CLI::Success& help) {
    return streams.finish(app.exit(help));
  } catch (const std::exception& error) {
    print_error(error);
    return kUsage;
  }
  try {
    return streams.finish(run(flags));
  } catch (const train::Diverged& error) {
    return report_error(error, kDiverged);
  } catch (const optim::OverflowAtFloor& error) {
    return report_error(error, kDiverged);
  } catch (const std::exception& error) {
    return report_error(error, kError);
  }
}
