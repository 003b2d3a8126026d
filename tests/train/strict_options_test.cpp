// Options and parts that would have no effect, or affect another object than the user means, give
// one error before the first step.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/optim/schedule.h>
#include <binade/optim/sgd.h>
#include <binade/train/checkpoint/checkpoint.h>
#include <binade/train/lens_report.h>
#include <binade/train/precision/shadow_report.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/loop/toy_run.h"

namespace binade::train::strict_options_test {
namespace {

using toy::Counted;
using toy::ToyRun;

void expect_error(const std::function<void()>& run, const std::vector<std::string>& words) {
  const std::string error = error_of(run);
  for (const std::string& word : words) {
    EXPECT_NE(error.find(word), std::string::npos) << error << "\nlacks: " << word;
  }
}

TEST(StrictOptions, CheckpointsNeedARunDirectory) {
  expect_error(
      [] { ToyRun({.checkpoint_every = 3}); },
      {"trainer: got checkpoint_every 3 without a run directory", "set `run` (--run DIR)"});
  expect_error([] { ToyRun({.async_save = true}); },
               {"trainer: got async_save without a run directory"});
}

TEST(StrictOptions, ForceIsForResuming) {
  const testing::TemporaryDirectory folder;
  for (const bool overwrite : {false, true}) {
    expect_error([&] { ToyRun({.run = folder / "run", .overwrite = overwrite, .force = true}); },
                 {"trainer: got force without resume", "overwrite (--overwrite) to begin anew"});
  }
}

TEST(StrictOptions, APhaseThatWouldNeverTakePart) {
  Counted model;
  optim::SGD first(model.parameters(), {.lr = 0.1});
  const auto phase = [&](int64_t every) {
    return std::vector<TrainingPhase>{
        {.name = "rare", .optimizer = first, .step = toy::regression_step, .every = every}};
  };
  const data::TensorDataset rows = toy::rows(40, 1);
  data::Loader loader(rows, {.batch = 8, .workers = 0});
  const auto fit = [&](int64_t every, TrainerOptions options) {
    options.progress = false;
    Trainer trainer({.model = model, .phases = phase(every)}, std::move(options));
    trainer.fit(loader);
    return trainer.steps();
  };
  expect_error([&] { fit(11, {.epochs = 2}); },
               {"got every of the phase rare = 11 for a run of 10 steps", "at most 10"});
  expect_error([&] { fit(6, {.epochs = 2, .max_steps = 5, .accumulate = 2}); },
               {"every of the phase rare = 6 for a run of 5 steps"});
  EXPECT_EQ(fit(10, {.epochs = 2}), 10);
  EXPECT_EQ(fit(5, {.max_steps = 5}), 5);
}

// The lens and the shadow look at the first step, so an interval longer than the run means one
// look.
TEST(StrictOptions, ARunShorterThanTheIntervalHasOneLook) {
  const testing::TemporaryDirectory folder;
  const std::string run = folder / "run";
  ToyRun({.epochs = 1, .run = run, .lens = 6, .shadow = 6}).fit();
  const LensReport lens = read_lens(run + "/lens.jsonl");
  EXPECT_TRUE(lens.steps == 1 && lens.last_step == 0);
  const std::vector<ShadowStep> shadow = read_shadow(run + "/shadow.jsonl");
  EXPECT_TRUE(shadow.size() == 1 && shadow[0].step == 0);
}

TEST(StrictOptions, ValidationsNeedALoader) {
  for (const ValidateEvery every : {ValidateEvery{.steps = 2}, ValidateEvery{.epochs = 2}}) {
    ToyRun run({.epochs = 4, .validate_every = every});
    expect_error([&] { run.trainer.fit(run.train); },
                 {"trainer: got validate_every and no validation loader"});
  }
}

TEST(StrictOptions, PartsOfAnotherModelOrOptimizer) {
  Counted model, other;
  optim::SGD sgd(model.parameters(), {.lr = 0.1}), of_other(other.parameters(), {.lr = 0.1});
  optim::Schedule schedule = optim::WarmupCosine(of_other, {.warmup = 1, .total = 10});
  optim::Schedule curve = optim::WarmupCosine(0.1, {.warmup = 1, .total = 10});
  optim::ReduceLROnPlateau plateau(of_other, {});
  Ema ema(other);
  const auto make = [&](const TrainingParts& parts) {
    Trainer(parts, {.progress = false, .step = toy::regression_step});
  };
  expect_error([&] { make({.model = model, .optimizer = of_other}); },
               {"trainer: got an optimizer of another model"});
  for (optim::Schedule* wrong : {&schedule, &curve}) {
    expect_error([&] { make({.model = model, .optimizer = sgd, .schedule = wrong}); },
                 {"trainer: got a schedule of another optimizer"});
  }
  expect_error([&] { make({.model = model, .optimizer = sgd, .plateau = &plateau}); },
               {"trainer: got a plateau of another optimizer"});
  expect_error([&] { make({.model = model, .optimizer = sgd, .ema = &ema}); },
               {"trainer: got an Ema of another model"});
}

TEST(StrictCheckpoint, PartsBelongTogether) {
  const testing::TemporaryDirectory folder;
  const std::string path = folder / "run";
  Counted model, other, third;
  optim::SGD sgd(model.parameters(), {.lr = 0.1}), of_other(other.parameters(), {.lr = 0.1});
  optim::Schedule schedule = optim::WarmupCosine(sgd, {.warmup = 1, .total = 10});
  optim::Schedule of_of_other = optim::WarmupCosine(of_other, {.warmup = 1, .total = 10});
  Ema ema(model);
  expect_error([&] { save_checkpoint(path, model, of_other); },
               {"save_checkpoint: the optimizer 'optimizer' is of another model"});
  expect_error([&] { save_checkpoint(path, third, sgd); }, {"is of another model"});
  expect_error([&] { save_checkpoint(path, model, sgd, of_of_other); },
               {"save_checkpoint: the schedule 'schedule' is of another optimizer"});
  expect_error([&] { load_checkpoint(path, other, ema); },
               {"load_checkpoint: the ema 'ema' is of another model"});
  EXPECT_TRUE(save_checkpoint(path, model, sgd, schedule, ema, named("other", other),
                              named("other-sgd", of_other), named("other-schedule", of_of_other)));
  EXPECT_TRUE(save_checkpoint(folder / "alone", sgd));
}

TEST(StrictModule, ACycleIsAnError) {
  struct Node : nn::Module {};
  Node a, b, c;
  a.register_module("b", b);
  b.register_module("c", c);
  for (Node* inner : {&c, &b, &a}) {
    expect_error([&] { inner->register_module("again", a); },
                 {"register_module: 'again' is the module itself or one that holds it"});
  }
}

TEST(StrictModule, AParameterReplacedAfterTheOptimizerIsAnError) {
  Counted model;
  model.fc.weight = randn({1, toy::kInputs}).require_grad();  // before: trained as any other
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  const Tensor x = randn({4, toy::kInputs});
  sum(model(x)).backward();
  (void)sgd.step();
  model.freeze("fc.bias");
  (void)model(x);
  {
    const NoGradGuard guard;
    model.fc.weight.copy_(ones({1, toy::kInputs}));
  }
  (void)model(x);
  const Tensor trained = model.fc.weight;
  model.fc.weight = randn({1, toy::kInputs});
  expect_error([&] { (void)model(x); },
               {"module: the parameter 'fc.weight' of binade::nn::Linear was replaced",
                "copy_() or load_state()", "(in module fc)"});
  model.fc.weight = trained;
  EXPECT_TRUE(model(x).defined());
}

}  // namespace
}  // namespace binade::train::strict_options_test
