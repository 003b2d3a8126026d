// Phases, metrics, logs and decisions of the Trainer are the same on several ranks as on one.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/sets/tensor_dataset.h>
#include <binade/dist/job/threads.h>
#include <binade/nn/linear.h>
#include <binade/optim/adamw.h>
#include <binade/train/metrics/regression.h>
#include <binade/train/run_directory.h>
#include <binade/train/trainer.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/temporary_directory.h"

namespace binade::train::trainer_phases_ranks_test {
namespace {

using dist::Communicator;

constexpr int64_t kRows = 48, kGlobalBatch = 12;

struct TwoParts : nn::Module {
  nn::Linear first{*this, "first", {.in = 3, .out = 4}};
  nn::Linear last{*this, "last", {.in = 4, .out = 1}};
  Tensor forward(const Tensor& x) override { return last(tanh(first(x))); }
};

struct Setup {
  std::string run = {};
  bool resume = false;
  int64_t max_steps = 9;
  int stopping_rank = -1;  // this rank asks for a stop after step 4
};

struct Outcome {
  std::vector<double> weights;
  NamedValues values;
  NamedValues validation;
  int64_t steps = 0;
  std::string reason;
};

StepOutput regression(TwoParts& net, const data::Batch& batch, const char* log) {
  const Tensor p = net(batch["x"]);
  return {.loss = mse_loss(p, batch["y"]),
          .output = p,
          .log = {{log, l1_loss(p, batch["y"]).detach()}}};
}

Outcome train(const Setup& setup, Communicator* group) {
  const int ranks = group ? group->size() : 1, rank = group ? group->rank() : 0;
  manual_seed(3);
  const Tensor x = randn({kRows, 3}, DType::f64);
  const data::TensorDataset rows({{"x", x}, {"y", sum(x, {1}, true)}});
  manual_seed(4);
  TwoParts model;
  model.to(DType::f64);
  optim::AdamW first(model.first.parameters(), {.lr = 0.02}),
      last(model.last.parameters(), {.lr = 0.03});
  Ema ema(model, {.decay = 0.7});
  TrainerOptions options{
      .max_steps = setup.max_steps,
      .accumulate = 2,
      .clip_norm = 0.5,
      .run = setup.run,
      .resume = setup.resume,
      .checkpoint_every = setup.run.empty() ? 0 : 1,
      .progress = false,
      .validation_step = [](TwoParts& net,
                            const data::Batch& batch) { return regression(net, batch, "error"); },
      .metrics = {R2({.target = "y"})},
      .monitor = "validation_r2",
      .validate_every = {.steps = 2},
      .log_every = 3,
      .log_norms = true,
      .group = group};
  if (rank == setup.stopping_rank) {
    options.callbacks = {{.step = [](const RunView& run) {
      if (run.step == 4) {
        run.stop("this rank has seen enough");
      }
    }}};
  }
  Trainer trainer(
      {.model = model,
       .ema = &ema,
       .phases = {{.name = "first",
                   .optimizer = first,
                   .step = [](TwoParts& net,
                              const data::Batch& batch) { return regression(net, batch, "a"); }},
                  {.name = "last",
                   .optimizer = last,
                   .step = [](TwoParts& net,
                              const data::Batch& batch) { return regression(net, batch, "b"); },
                   .every = 2}}},
      options);
  data::LoaderOptions loading{.batch = kGlobalBatch / 2 / ranks,
                              .workers = 0,
                              .seed = 4,
                              .shard = rank,
                              .shard_count = ranks};
  data::Loader loader(rows, loading);
  loading.batch = 5;
  loading.uneven_shards = data::UnevenShards::keep;
  data::Loader validation(rows, loading);
  trainer.fit(loader, &validation);
  Outcome outcome{.weights = {},
                  .values = trainer.values(),
                  .validation = trainer.validate(validation).values,
                  .steps = trainer.steps(),
                  .reason = trainer.stop_reason()};
  for (const auto& [name, tensor] : model.state()) {
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      outcome.weights.push_back(tensor.at(i));
    }
  }
  return outcome;
}

std::vector<Outcome> train_on(int ranks, const Setup& setup) {
  std::vector<Outcome> all(static_cast<size_t>(ranks));
  if (ranks == 1) {
    all[0] = train(setup, nullptr);
    return all;
  }
  dist::run_threads(ranks, [&](Communicator& group) {
    all[static_cast<size_t>(group.rank())] = train(setup, &group);
  });
  return all;
}

void expect_near(const NamedValues& a, const NamedValues& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    if (a[i].first != "samples_per_second") {
      EXPECT_NEAR(a[i].second, b[i].second, 1e-10) << a[i].first;
    }
  }
}

TEST(TrainerPhasesRanks, ManyRanksComputeWhatOneComputes) {
  const Outcome one = train_on(1, {})[0];
  EXPECT_EQ(one.steps, 9);
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    const std::vector<Outcome> all = train_on(ranks, {});
    for (const Outcome& outcome : all) {
      EXPECT_EQ(outcome.weights, all[0].weights);
      EXPECT_EQ(outcome.validation, all[0].validation);
    }
    expect_near(all[0].values, one.values);
    expect_near(all[0].validation, one.validation);
    ASSERT_EQ(all[0].weights.size(), one.weights.size());
    for (size_t i = 0; i < one.weights.size(); ++i) {
      EXPECT_NEAR(all[0].weights[i], one.weights[i], 1e-10);
    }
  }
}

TEST(TrainerPhasesRanks, ACallbackOfOneRankEndsAll) {
  const std::vector<Outcome> all = train_on(2, {.stopping_rank = 1});
  EXPECT_EQ(all[0].steps, 4);
  EXPECT_EQ(all[1].steps, 4);
  EXPECT_EQ(all[0].reason, "a callback of another rank asked for it");
  EXPECT_EQ(all[1].reason, "this rank has seen enough");
}

TEST(TrainerPhasesRanks, AResumedRunIsTheSame) {
  const binade::testing::TemporaryDirectory directory;
  // Both runs validate after step 6.
  const Outcome whole = train_on(2, {.run = directory / "whole", .max_steps = 10})[0];
  train_on(2, {.run = directory / "run", .max_steps = 6});
  const Outcome resumed =
      train_on(2, {.run = directory / "run", .resume = true, .max_steps = 10})[0];
  EXPECT_EQ(resumed.weights, whole.weights);
  EXPECT_EQ(resumed.validation, whole.validation);
  const auto lines = [&](const char* run) {
    std::string all;
    for (std::string line : read_lines(directory / run + "/metrics.jsonl")) {
      const size_t at = line.find("\"samples_per_second\":");
      if (at != std::string::npos) {
        line.erase(at, line.find(',', at) - at);
      }
      all += line;
    }
    return all;
  };
  EXPECT_EQ(lines("run"), lines("whole"));
}

}  // namespace
}  // namespace binade::train::trainer_phases_ranks_test
