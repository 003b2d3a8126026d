// Tests the Trainer in memory: early stopping and best weights for scripted validation losses,
// accumulation, clipping, evaluation, prediction.
#include <binade/nn/linear.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/data/fake_dataset.h"
#include "tests/train/scripted_run.h"

namespace binade::train::trainer_test {
namespace {

using test::LitPixels, test::Losses, test::ScriptedModel, test::ScriptedRun;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct EarlyStop {
  const char* what;
  Losses losses;
  int64_t patience, epochs, best;  // expected number of epochs, and the best one
};

TEST(TrainerTest, StopsEarlyAndRestoresTheBestEpoch) {
  const EarlyStop cases[] = {
      {"patience is used up", {3, 2, 2.5, 2.25, 1, 1}, 2, 4, 1},
      {"an equal loss is no improvement", {2, 2, 2, 1, 1, 1}, 2, 3, 0},
      {"an improvement starts the count again", {3, 4, 2, 4, 4, 1}, 2, 5, 2},
      {"patience 1", {3, 2, 1, 1.5, 0.5, 0.5}, 1, 4, 2},
      {"without end of patience", {3, 1, 2, 2, 2, 2}, 0, 6, 1},
      {"always better", {6, 5, 4, 3, 2, 1}, 1, 6, 5},
      {"not a number at first", {kNan, 3, 2, 4, 4, 1}, 2, 5, 2},
      {"not a number, and then worse", {kNan, 3, 4, 4, 1, 1}, 2, 4, 1},
      {"not a number after the best", {3, kNan, kNan, 1, 1, 1}, 2, 3, 0},
  };
  for (const EarlyStop& c : cases) {
    SCOPED_TRACE(c.what);
    ScriptedRun run(c.losses, {.epochs = 6, .patience = c.patience, .on_nan = OnNan::ignore});
    run.fit();
    EXPECT_EQ(run.trainer.epoch(), c.epochs);
    EXPECT_EQ(run.trainer.steps(), c.epochs);
    EXPECT_EQ(run.epoch_of_weights(), c.best);
    EXPECT_FALSE(run.model.evaluated_in_training);
    EXPECT_TRUE(run.model.is_training());
  }
}

TEST(TrainerTest, WithoutValidationTheLastWeightsStay) {
  ScriptedRun run({}, {.epochs = 3, .patience = 1});
  run.trainer.fit(run.train);
  EXPECT_EQ(run.trainer.epoch(), 3);
  EXPECT_EQ(run.epoch_of_weights(), 2);
}

// One linear layer over all pixels, in the dtype of its weights.
class LinearModel : public nn::Module {
 public:
  LinearModel() : fc({.in = 48, .out = 10}) { register_module("fc", fc); }
  Tensor forward(const Tensor& x) override { return fc(flatten(x.to(fc.weight.dtype()), 1)); }
  nn::Linear fc;
};

struct LinearRun {
  std::vector<double> weights;
  int64_t steps = 0;
};

LinearRun train_linear(int64_t samples, int64_t batch, int64_t accumulate,
                       std::optional<double> clip_norm = {}) {
  manual_seed(7);
  LinearModel model;
  model.to(DType::f64);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  Trainer trainer(
      {.model = model, .optimizer = optimizer},
      {.epochs = 2, .accumulate = accumulate, .clip_norm = clip_norm, .progress = false});
  const data::test::FakeDataset pictures(samples);
  data::Loader loader(pictures, {.batch = batch, .workers = 0, .seed = 3});
  trainer.fit(loader);
  LinearRun run{.weights = {}, .steps = trainer.steps()};
  for (const auto& [name, tensor] : model.state()) {
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      run.weights.push_back(tensor.at(i));
    }
  }
  return run;
}

double largest_difference(const LinearRun& a, const LinearRun& b) {
  EXPECT_EQ(a.weights.size(), b.weights.size());
  double largest = 0;
  for (size_t i = 0; i < a.weights.size(); ++i) {
    largest = std::max(largest, std::abs(a.weights[i] - b.weights[i]));
  }
  return largest;
}

TEST(TrainerTest, SixteenMicroBatchesOfEightAreABatchOf128) {
  // 256 gives full windows; with 300 the last window has five micro-batches of 8 and one of 4.
  for (int64_t samples : {256, 300}) {
    SCOPED_TRACE(samples);
    for (const std::optional<double> clip : {std::optional<double>(), std::optional(0.1)}) {
      const LinearRun large = train_linear(samples, 128, 1, clip);
      const LinearRun small = train_linear(samples, 8, 16, clip);
      EXPECT_EQ(large.steps, samples == 256 ? 4 : 6);
      EXPECT_EQ(small.steps, large.steps);
      EXPECT_LT(largest_difference(small, large), 1e-12);
    }
  }
  EXPECT_GT(largest_difference(train_linear(300, 128, 1), train_linear(300, 128, 1, 0.1)), 1e-3)
      << "clipping must have an effect here";
}

struct ClippedStep {
  std::optional<double> clip_norm;
  int64_t accumulate;
  double expected;  // change of each of the four weights in a step of size 1
};

TEST(TrainerTest, ClippingBoundsTheNormOfTheTrueGradient) {
  const ClippedStep cases[] = {
      {std::nullopt, 1, 1}, {10, 1, 1}, {0.5, 1, 0.25}, {0.5, 4, 0.25}, {2.5, 4, 1}};
  const LitPixels pictures(4);
  for (const ClippedStep& c : cases) {
    for (const bool scaled : {false, true}) {
      SCOPED_TRACE(text("clip_norm ", c.clip_norm.value_or(0), ", scaled ", scaled));
      ScriptedModel model;
      optim::SGD optimizer(model.parameters(), {.lr = 1});
      optim::LossScaler scaler = optim::LossScaler::fixed(1024);
      Trainer trainer(
          {.model = model, .optimizer = optimizer, .scaler = scaled ? &scaler : nullptr},
          {.epochs = 1,
           .accumulate = c.accumulate,
           .clip_norm = c.clip_norm,
           .progress = false,
           .step = test::unit_step(model)});
      data::Loader loader(pictures, {.batch = 4 / c.accumulate, .workers = 0});
      trainer.fit(loader);
      EXPECT_EQ(trainer.steps(), 1);
      EXPECT_NEAR(model.weight.at(0), -c.expected, 1e-6);
      EXPECT_NEAR(model.weight.at(3), -c.expected, 1e-6);
    }
  }
}

TEST(TrainerTest, APlateauGetsTheValidationLoss) {
  ScriptedModel model({3, 2, 2, 2, 2});
  optim::SGD optimizer(model.parameters(), {.lr = 1});
  optim::ReduceLROnPlateau plateau(optimizer, {.factor = 0.5, .patience = 1});
  Trainer trainer({.model = model, .optimizer = optimizer, .plateau = &plateau},
                  {.epochs = 5,
                   .patience = 0,
                   .progress = false,
                   .step = test::unit_step(model),
                   .sanity_batches = 0});
  const LitPixels pictures(1);
  data::Loader train(pictures, {.batch = 1, .workers = 0});
  data::Loader validation(pictures, {.batch = 1, .workers = 0});
  trainer.fit(train, &validation);
  EXPECT_EQ(optimizer.lr(), 0.5);
  EXPECT_NEAR(plateau.best(), 2, 1e-6);
  EXPECT_EQ(plateau.state_scalars().at("bad_looks"), 1);
  EXPECT_EQ(trainer.why_no_graph(), "on the CPU there are none");
}

TEST(TrainerTest, WithoutValidationAPlateauGetsTheTrainingLoss) {
  ScriptedModel model;
  optim::SGD optimizer(model.parameters(), {.lr = 1});
  optim::ReduceLROnPlateau plateau(optimizer, {.patience = 1});
  Trainer trainer({.model = model, .optimizer = optimizer, .plateau = &plateau},
                  {.epochs = 3, .patience = 0, .progress = false, .step = test::unit_step(model)});
  const LitPixels pictures(1);
  data::Loader train(pictures, {.batch = 1, .workers = 0});
  trainer.fit(train);
  EXPECT_NEAR(plateau.best(), -8, 1e-6);  // starts at 0 and falls by 4 per epoch
}

TEST(TrainerTest, ValidationIsTheMeanOverSamples) {
  ScriptedModel model;
  optim::SGD optimizer(model.parameters(), {.lr = 1});
  Trainer trainer({.model = model, .optimizer = optimizer}, {.progress = false});
  const LitPixels pictures(12);
  const double lit = std::exp(1.0) + 3;
  for (int64_t batch : {1, 5, 12, 100}) {
    data::Loader loader(pictures, {.batch = batch, .workers = 0});
    const Evaluation evaluation = trainer.validate(loader);
    EXPECT_EQ(evaluation.samples, 12);
    EXPECT_DOUBLE_EQ(evaluation["accuracy"], 8.0 / 12);
    EXPECT_NEAR(evaluation.loss, std::log(lit) - 8.0 / 12, 1e-6);
  }
  EXPECT_FALSE(model.evaluated_in_training);
}

TEST(TrainerTest, PredictsTheClassOfTheLargestLogit) {
  ScriptedModel model;
  optim::SGD optimizer(model.parameters(), {.lr = 1});
  Trainer trainer({.model = model, .optimizer = optimizer}, {.progress = false});
  const Tensor images = from_values({0, 1, 2, 9,      //
                                     -5, -1, -2, -3,  //
                                     7, 0, 7, 1,      //
                                     0, 0.5, 0.75, 0.25},
                                    {4, 1, 1, 4});
  EXPECT_EQ(trainer.predict(images), (std::vector<int64_t>{3, 1, 0, 2}));
  EXPECT_EQ(trainer.predict(slice(images, 0, 1, 2)), (std::vector<int64_t>{1}));
  EXPECT_FALSE(model.evaluated_in_training);
  EXPECT_TRUE(model.is_training());
}

TEST(TrainerTest, EvaluationLeavesEveryModuleInItsMode) {
  LinearModel model;
  model.fc.eval();
  optim::SGD optimizer(model.parameters(), {.lr = 1});
  Trainer trainer({.model = model, .optimizer = optimizer}, {.progress = false});
  EXPECT_EQ(trainer.predict(zeros({2, 3, 4, 4})).size(), 2U);
  EXPECT_TRUE(model.is_training());
  EXPECT_FALSE(model.fc.is_training());
}

}  // namespace
}  // namespace binade::train::trainer_test
