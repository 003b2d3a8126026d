// A training on one or several ranks (threads), for tests of the Trainer.
#pragma once
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/job/threads.h>
#include <binade/nn/linear.h>
#include <binade/nn/norm.h>
#include <binade/optim/adamw.h>
#include <binade/train/trainer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/data/dataset_rows.h"
#include "tests/data/fake_dataset.h"

namespace binade::train {

using data::test::FakeDataset;
using dist::Communicator;

inline constexpr int64_t kSamples = 120, kGlobalBatch = 12, kSteps = kSamples / kGlobalBatch;

// Two layers over all pixels, in the dtype of the weights, created with equal values everywhere. If
// a batch norm follows, the first layer has no bias, since its gradient would only be rounding
// error.
class TwoLayers : public nn::Module {
 public:
  explicit TwoLayers(bool batch_norm = false) : TwoLayers(batch_norm, seed()) {}
  Tensor forward(const Tensor& x) override {
    const Tensor h = fc1(mul(flatten(x.to(fc1.weight.dtype()), 1), 0.3));
    return fc2(tanh(has_norm ? norm(h) : h));
  }
  bool has_norm;
  nn::Linear fc1, fc2;
  nn::BatchNorm1d norm;

 private:
  static int seed() {
    manual_seed(11);
    return 0;
  }
  TwoLayers(bool batch_norm, int)
      : has_norm(batch_norm),
        fc1({.in = 48, .out = 16, .bias = !batch_norm}),
        fc2({.in = 16, .out = 10}),
        norm({.channels = 16}) {
    if (has_norm) {
      register_module("norm", norm);
    }
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
};

struct Training {
  int64_t epochs = 3, accumulate = 1;
  DType dtype = DType::f64;
  bool f16 = false;                         // mixed precision
  std::optional<Precision> precision = {};  // overrides f16
  std::optional<double> clip = {};
  bool scaler = false;
  int64_t poisoned = -1;          // gradients of this sample are infinite
  int64_t poisonings = kSamples;  // this many times
  OnNan on_nan = OnNan::error;
  int64_t validation = 17;
  std::string directory = {};
  bool resume = false;
  int64_t checkpoint_every = 0;
  bool stop_on_signal = false;
  Sharding sharding = Sharding::none;
  bool batch_norm = false, synchronized = false;
  bool rows = false;         // samples come one after another (data/iterable.h)
  bool knows_length = true;  // their number is known
  int workers = 0;
  // Called before each batch.
  std::function<void(const Trainer&, const data::Batch&, int rank)> watch = {};
  // Called before each batch with the model.
  std::function<void(const Trainer&, const nn::Module&, int rank)> look = {};
};

struct Outcome {
  std::vector<double> weights;
  Evaluation validation;
  int64_t steps = 0, skipped = 0, rollbacks = 0;
  int stopped_by = 0;
};

// Trains as one rank of `group`, or alone.
inline Outcome train(const Training& run, Communicator* group) {
  const int ranks = group ? group->size() : 1, rank = group ? group->rank() : 0;
  TwoLayers model(run.batch_norm);
  if (run.synchronized) {
    model.synchronize_batch_norms(group);
  }
  if (run.f16 || run.precision) {
    model.to(Device{}, run.precision.value_or(Precision::mixed(DType::f16)));
  } else {
    model.to(run.dtype);
  }
  if (group && run.sharding != Sharding::none) {
    model.parameters().shard(*group, run.sharding);
  }
  optim::AdamW adam(model.parameters(), {.lr = 0.01});
  optim::LossScaler scaler({.init_scale = 1024});
  Trainer* at = nullptr;
  int64_t poisonings = 0;
  const TrainingStep step = [&](nn::Module& net, const data::Batch& batch) {
    if (run.watch && net.is_training()) {
      run.watch(*at, batch, rank);
    }
    if (run.look && net.is_training()) {
      run.look(*at, net, rank);
    }
    const Tensor loss = classification_step(net, batch).loss;
    if (!net.is_training()) {  // validation
      return loss;
    }
    const auto& ids = batch.indices;
    const bool bad = std::find(ids.begin(), ids.end(), run.poisoned) != ids.end();
    return bad && poisonings++ < run.poisonings ? mul(loss, INFINITY) : loss;
  };
  Trainer trainer({.model = model, .optimizer = adam, .scaler = run.scaler ? &scaler : nullptr},
                  {.epochs = run.epochs,
                   .accumulate = run.accumulate,
                   .clip_norm = run.clip,
                   .patience = 0,
                   .run = run.directory,
                   .resume = run.resume,
                   .checkpoint_every = run.checkpoint_every,
                   .progress = false,
                   .step = run.watch || run.look || run.poisoned >= 0 ? step : nullptr,
                   .on_nan = run.on_nan,
                   .group = group,
                   .data_parallel = {.bucket_bytes = 4000, .check_every = 1},
                   .stop_on_signal = run.stop_on_signal});
  at = &trainer;
  const auto pictures = std::make_shared<FakeDataset>(kSamples);
  const FakeDataset others(run.validation);
  data::LoaderOptions options{.batch = kGlobalBatch / ranks / run.accumulate,
                              .workers = run.workers,
                              .seed = 4,
                              .shuffle_buffer = 32,
                              .shard = rank,
                              .shard_count = ranks};
  const auto rows = std::make_shared<data::test::DatasetRows>(pictures, run.knows_length);
  const auto loader = run.rows ? std::make_unique<data::Loader>(rows, options)
                               : std::make_unique<data::Loader>(pictures, options);
  options.batch = 5;
  options.shuffle = false;
  options.uneven_shards = data::UnevenShards::keep;
  data::Loader validation(others, options);
  trainer.fit(*loader, &validation);
  Outcome outcome{.weights = {},
                  .validation = trainer.validate(validation),
                  .steps = trainer.steps(),
                  .skipped = trainer.steps() - adam.step_count(),
                  .rollbacks = trainer.rollbacks(),
                  .stopped_by = trainer.stopped_by()};
  for (const auto& [name, tensor] : model.state()) {
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      outcome.weights.push_back(tensor.at(i));
    }
  }
  return outcome;
}

// Trains alone or on several ranks, which must all have the same outcome.
inline Outcome train_on(int ranks, const Training& run) {
  if (ranks == 1) {
    return train(run, nullptr);
  }
  std::vector<Outcome> all(static_cast<size_t>(ranks));
  dist::run_threads(ranks, [&](Communicator& group) {
    all[static_cast<size_t>(group.rank())] = train(run, &group);
  });
  for (const Outcome& outcome : all) {
    EXPECT_EQ(outcome.weights, all[0].weights);
    EXPECT_EQ(outcome.validation.loss, all[0].validation.loss);
    EXPECT_EQ(outcome.validation.values, all[0].validation.values);
    EXPECT_EQ(outcome.steps, all[0].steps);
    EXPECT_EQ(outcome.skipped, all[0].skipped);
    EXPECT_EQ(outcome.rollbacks, all[0].rollbacks);
    EXPECT_EQ(outcome.stopped_by, all[0].stopped_by);
  }
  return all[0];
}

inline double difference(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.weights.size(), b.weights.size());
  double largest = 0;
  for (size_t i = 0; i < a.weights.size(); ++i) {
    largest = std::max(
        largest, std::abs(a.weights[i] - b.weights[i]) / std::max(1.0, std::abs(b.weights[i])));
  }
  return largest;
}

}  // namespace binade::train
