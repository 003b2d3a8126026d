// Trains an image classifier from files to accuracy, in mixed precision unless told otherwise.
// Without --data it draws its own images. `train_classifier --help` lists the flags.
#include <binade/binade.h>
#include <unistd.h>

#include <cstdio>

#include "train_classifier_flags.h"

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
    return std::make_unique<optim::Lamb>(list,
                                         optim::LambOptions{.lr = f.lr, .weight_decay = decoupled});
  }
  if (f.optimizer == "adam") {
    return std::make_unique<optim::Adam>(list,
                                         optim::AdamOptions{.lr = f.lr, .weight_decay = decay});
  }
  if (f.optimizer == "rmsprop") {
    return std::make_unique<optim::Rmsprop>(
        list,
        optim::RmspropOptions{
            .lr = f.lr, .weight_decay = decay, .momentum = f.momentum_given ? f.momentum : 0});
  }
  if (f.optimizer == "adagrad") {
    return std::make_unique<optim::Adagrad>(
        list, optim::AdagradOptions{.lr = f.lr, .weight_decay = decay});
  }
  if (f.optimizer == "lars") {
    return std::make_unique<optim::Lars>(
        list, optim::LarsOptions{.lr = f.lr,
                                 .momentum = f.momentum,
                                 .weight_decay = f.weight_decay < 0 ? 1e-4 : f.weight_decay});
  }
  return std::make_unique<optim::Sgd>(
      list, optim::SgdOptions{.lr = f.lr, .momentum = f.momentum, .weight_decay = decay});
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
    return optim::OneCycle(
        optimizer,
        {.max_lr = f.lr, .total_steps = total, .cycle_momentum = optimizer.has_momentum()});
  }
  if (f.schedule == "linear") {
    return optim::LinearLr(optimizer, {.start_factor = 1, .end_factor = 0, .total_iters = total});
  }
  return f.schedule == "step" ? optim::Schedule(optim::StepLr(
                                    optimizer, {.step_size = std::max<int64_t>(total / 3, 1)}))
                              : optim::Schedule(optim::Constant(optimizer));
}

void announce(const Flags& f, const nn::Module& model, const Device& device,
              const train::Trainer& trainer) {
  std::printf("%s, %lld parameters, %s, on %s, data %s, run directory %s", f.model.c_str(),
              static_cast<long long>(model.parameter_count()), to_string(precision_of(f)).c_str(),
              describe(device).c_str(), f.data.c_str(), f.run.c_str());
  if (trainer.resumed()) {
    std::printf(", resumed in epoch %lld after step %lld",
                static_cast<long long>(trainer.epoch() + 1),
                static_cast<long long>(trainer.steps()));
  } else if (f.resume) {
    std::printf(", nothing to resume: starting fresh");
  }
  std::printf("\n");
  std::fflush(stdout);
}

// Whatever can be wrong with the input fails before the run directory is touched.
void run(Flags f) {
  kernels::set_threads(f.threads);
  const Device device = Device::parse(f.device);
  std::optional<optim::LossScaler> scaler = make_scaler(f);
  workers(f);
  f.run = f.run.empty() ? train::fresh_run_directory("runs/" + f.model) : f.run;
  if (f.data.empty()) {
    draw_data(f);
  }
  const train::ClassifierData data = open_data(f);
  std::vector<Tensor> pictures;
  for (const std::string& file : f.predict) {
    pictures.push_back(data.read_image(file));
  }

  manual_seed(static_cast<uint64_t>(f.seed));
  auto model = nn::make_model(
      f.model, {data.channels, data.height, data.width, int64_t(data.class_names.size())});
  model->to(device, precision_of(f));
  auto optimizer = make_optimizer(f, model->parameters());
  const int64_t steps_per_epoch =
      (data.train->batches_per_epoch() + f.accumulate - 1) / f.accumulate;
  auto schedule = make_schedule(f, *optimizer, f.epochs * steps_per_epoch);
  optim::ReduceLrOnPlateau plateau(*optimizer, {.factor = 0.1, .patience = 2});
  train::prepare_run_directory(f.run, f.resume, f.overwrite);
  train::Trainer trainer(
      {*model, *optimizer, scaler ? &*scaler : nullptr, schedule ? &*schedule : nullptr,
       schedule ? nullptr : &plateau},
      {.epochs = f.epochs,
       .accumulate = f.accumulate,
       .clip_norm = f.clip > 0 ? std::optional(f.clip) : std::nullopt,
       .patience = f.patience,
       .run = f.run,
       .resume = f.resume,
       .checkpoint_every = f.checkpoint_every,
       .graph = f.graph == "off" ? train::StepGraph::off : train::StepGraph::automatic,
       .lens = f.lens,
       .lens_layers = f.lens_layers,
       .settings = settings_of(f, data),
       .precision = f.precision,
       .augment = train::to_string(data.augment)});
  announce(f, *model, device, trainer);
  trainer.fit(*data.train, data.validation.get());
  train::save_model(f.run + "/model.safetensors", *model);
  const train::Evaluation test = trainer.test(*data.test);
  for (size_t i = 0; i < pictures.size(); ++i) {
    const auto label = static_cast<size_t>(trainer.predict(pictures[i]).at(0));
    std::printf("%s: %s\n", f.predict[i].c_str(), data.class_names[label].c_str());
  }
  std::printf("test accuracy: %.2f%%\n", 100 * test.accuracy);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Trains an image classifier.");
  add_flags(app, flags);
  try {
    app.parse(argc, argv);
    check_combinations(app, flags);
    flags.momentum_given = app.get_option("--momentum")->count() > 0;
    run(flags);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& error) {
    const char* clear_progress = isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "";
    std::fprintf(stderr, "%sbinade: error: %s\n", clear_progress, error.what());
    return 1;
  }
  return 0;
}
