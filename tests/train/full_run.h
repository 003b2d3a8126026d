// A small run with every part that has state. A test can end it at any batch.
#pragma once
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/transforms.h>
#include <binade/nn/activation.h>
#include <binade/nn/conv.h>
#include <binade/nn/linear.h>
#include <binade/nn/norm.h>
#include <binade/optim/adamw.h>
#include <binade/train/model_file.h>
#include <binade/train/run_directory.h>
#include <binade/train/trainer.h>

#include <optional>
#include <string>

#include "tests/data/fake_dataset.h"

namespace binade::train {

class Net : public nn::Module {
 public:
  Net() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("dropout", dropout);
    register_module("fc", fc);
  }
  Tensor forward(const Tensor& x) override { return fc(flatten(dropout(relu(norm(conv(x)))), 1)); }
  nn::Conv2d conv{{.in = 3, .out = 4, .kernel = {3, 3}, .padding = {1, 1}}};
  nn::BatchNorm2d norm{{.channels = 4}};
  nn::Dropout dropout{{.p = 0.2}};
  nn::Linear fc{{.in = 64, .out = 10}};
};

struct Death {};  // thrown to simulate the death of a process

struct RunSetup {
  int64_t epochs = 3, every = 1;  // `every`: steps between checkpoints
  uint64_t seed = 5;              // seed of the process, before anything is resumed
  int workers = 0;
  Precision precision = Precision::mixed(DType::f16);
};

// All parts of a run: f16 with a loss scaler, batch norm, dropout, augmentation, accumulation,
// clipping, AdamW, warm-up and cosine.
struct FullRun {
  FullRun(const std::string& directory, bool resume, const RunSetup& setup)
      : train_data(22),
        validation_data(6),
        train(train_data, {.batch = 4,
                           .workers = setup.workers,
                           .seed = 3,
                           .transform = data::random_horizontal_flip()}),
        validation(validation_data, {.batch = 4, .workers = 0, .shuffle = false}) {
    manual_seed(setup.seed);
    model.emplace();
    model->to(Device{}, setup.precision);
    adamw.emplace(model->parameters(), optim::AdamWOptions{.lr = 0.01});
    schedule.emplace(optim::WarmupCosine(*adamw, {.warmup = 4, .total = 3 * setup.epochs}));
    trainer.emplace(
        TrainingParts{
            .model = *model, .optimizer = *adamw, .scaler = &scaler, .schedule = &*schedule},
        TrainerOptions{.epochs = setup.epochs,
                       .accumulate = 2,
                       .clip_norm = 1,
                       .patience = 0,
                       .run = directory,
                       .resume = resume,
                       .checkpoint_every = setup.every,
                       .progress = false,
                       .step =
                           [this](nn::Module& net, const data::Batch& batch) {
                             if (calls++ == die_at) {
                               throw Death();
                             }
                             StepOutput output = classification_step(net, batch);
                             output.log = {{"twice", output.loss.detach() * 2.0}};
                             return output;
                           },
                       .sanity_batches = 0});
  }
  // Dies at the given call of the step, in training or validation. True if it reached the end.
  bool fit(int64_t die_at_call = -1) {
    die_at = die_at_call;
    try {
      trainer->fit(train, &validation);
      return true;
    } catch (const Death&) {
      return false;
    }
  }

  data::test::FakeDataset train_data, validation_data;
  data::Loader train, validation;
  optim::LossScaler scaler{{.init_scale = 1024, .growth_interval = 4}};
  std::optional<Net> model;
  std::optional<optim::AdamW> adamw;
  std::optional<optim::Schedule> schedule;
  std::optional<Trainer> trainer;
  int64_t calls = 0, die_at = -1;
};

// The record that must not change: metrics, and every number of the parts at the end.
inline std::string record_of(const std::string& directory, const FullRun& run) {
  std::string all;
  for (std::string line : read_lines(directory + "/metrics.jsonl")) {
    for (const char* varies : {"\"samples_per_second\":", "\"workers\":"}) {
      const size_t at = line.find(varies);
      if (at != std::string::npos) {
        line.erase(at, line.find(',', at) - at);
      }
    }
    all += line;
  }
  NamedTensors tensors = run.model->state();
  for (auto& entry : run.adamw->state_tensors()) {
    tensors.push_back(entry);
  }
  all += text(state_hash(tensors), " step ", run.trainer->steps(), " scale ", run.scaler.scale(),
              " random ", generator().offset);
  return all;
}

}  // namespace binade::train
