// Tests the loop's effects on the model and its results: precision and device, modes, averages,
// predictions, lines of metrics.
#include <binade/nn/norm.h>
#include <binade/optim/sgd.h>
#include <binade/train/logging/csv.h>
#include <binade/train/run_directory.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/loop/toy_run.h"

namespace binade::train::loop_results_test {
namespace {

using binade::testing::TemporaryDirectory;
using namespace toy;

// precision and device ----------------------------------------------------------------------------

OptimizerPart make_adam() {
  return [](const ParameterList& parameters) {
    return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.02});
  };
}

TEST(Loop, MovesAndConvertsTheModel) {
  const Device device = kernels::test_device();
  const data::TensorDataset set = rows(40, 1);
  data::Loader train(set, {.batch = 8, .workers = 0}), validation(set, {.batch = 8, .workers = 0});
  Regression model;
  Trainer trainer({.model = model,
                   .optimizer = make_adam(),
                   .schedule =
                       [](optim::Optimizer& optimizer) {
                         return optim::WarmupCosine(optimizer, {.warmup = 2, .total = 10});
                       },
                   .ema = EmaOptions{.decay = 0.5}},
                  {.epochs = 2,
                   .progress = false,
                   .step = regression_step,
                   .precision = Precision::mixed(DType::f16),
                   .device = device});
  EXPECT_EQ(model.device(), device);
  EXPECT_EQ(model.first.weight.dtype(), DType::f16);
  trainer.fit(train, &validation);
  EXPECT_EQ(trainer.values().size() > 5, true);
  EXPECT_EQ(trainer.steps(), 10);
  EXPECT_EQ(trainer.ema()->updates(), 10);
  EXPECT_LT(trainer.optimizer().lr(), 0.02);
  bool scaled = false;
  for (const auto& [name, value] : trainer.values()) {
    scaled |= name == "loss_scale" && value > 1;
  }
  EXPECT_TRUE(scaled) << "f16 needs a loss scale";
}

TEST(Loop, AModelThatAnOptimizerHoldsStaysAsItIs) {
  Regression model;
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  const std::string error = error_of([&] {
    Trainer({.model = model, .optimizer = sgd},
            {.progress = false, .precision = Precision::mixed(DType::bf16)});
  });
  EXPECT_NE(error.find("a function that makes the optimizer"), std::string::npos) << error;
  Trainer({.model = model, .optimizer = sgd}, {.progress = false, .precision = Precision::full()});
}

// modes, averages, predictions, lines -------------------------------------------------------------

struct Normed : nn::Module {
  nn::Linear fc{*this, "fc", {.in = kInputs, .out = 4}};
  nn::BatchNorm1d bn1{*this, "bn1", {.channels = 4}};
  nn::BatchNorm1d bn2{*this, "bn2", {.channels = 4}};
  nn::Linear last{*this, "last", {.in = 4, .out = 1}};
  Tensor forward(const Tensor& x) override { return last(bn2(bn1(fc(x)))); }
};

TEST(Loop, KeepEvalFreezesBatchNorms) {
  Normed model;
  ToyRun run({.epochs = 2, .keep_eval = {"bn1"}}, model, nullptr);
  run.fit();
  EXPECT_EQ(model.bn1.running_mean.at(0), 0);
  EXPECT_NE(model.bn2.running_mean.at(0), 0);
  EXPECT_FALSE(model.bn1.is_training());
  EXPECT_TRUE(model.bn2.is_training());
}

TEST(Loop, ValidatesTheAveragesAndEndsWithThem) {
  Counted model;
  Ema ema(model, {.decay = 0.5});
  std::vector<double> seen, averages;
  TrainerOptions options{.epochs = 1, .sanity_batches = 0};
  options.validation_step = [&](Counted& net, const data::Batch& batch) {
    seen = numbers_of(net);
    return mse_loss(net(batch["x"]), batch["y"]);
  };
  std::vector<double> raw;
  options.callbacks = {{.validation = [&](const RunView& run) { raw = numbers_of(run.model); }}};
  ToyRun run(options, model, &ema);
  run.fit();
  for (const auto& [name, tensor] : ema.averages()) {
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      averages.push_back(tensor.at(i));
    }
  }
  EXPECT_EQ(ema.updates(), 5);
  EXPECT_EQ(seen, averages);
  EXPECT_NE(raw, averages);
  EXPECT_EQ(numbers_of(model), averages);
}

TEST(Loop, PredictsInTheOrderOfTheDataSet) {
  ToyRun run(
      {.epochs = 1, .predict_step = [](nn::Module& model, const data::Batch& batch) -> StepOutput {
         return {.loss = {}, .output = model(batch["x"]), .outputs = {{"x", batch["x"]}}};
       }});
  const NamedTensors all = run.trainer.predict(run.validation);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].first, "output");
  EXPECT_EQ(all[0].second.sizes(), (Dims{12, 1}));
  EXPECT_EQ(all[2].first, "indices");
  run.model.eval();
  const NoGradGuard guard;
  const Tensor& x = run.validation_rows.fields()[0].second;
  const Tensor y = run.model(x);
  for (int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(all[2].second.at(i), i);
    EXPECT_EQ(all[1].second.at(i * kInputs + 1), x.at(i * kInputs + 1));
    EXPECT_NEAR(all[0].second.at(i), y.at(i), 1e-6);
  }
}

TEST(Loop, PredictionWithoutOutputsIsAnError) {
  ToyRun run({.epochs = 1, .step = [](nn::Module& model, const data::Batch& batch) {
                return mse_loss(model(batch["x"]), batch["y"]);
              }});
  EXPECT_NE(error_of([&] { (void)run.trainer.predict(run.validation); }).find("gives no outputs"),
            std::string::npos);
  ToyRun other({.epochs = 1, .predict_step = [](nn::Module& model, const data::Batch& batch) {
                  return mean(model(batch["x"]));
                }});
  EXPECT_NE(error_of([&] {
              (void)other.trainer.predict(other.validation);
            }).find("expected a row for each of the 5 samples"),
            std::string::npos);
}

TEST(Loop, WritesLinesOfStepsAndEpochs) {
  const TemporaryDirectory directory;
  ToyRun run({.epochs = 2,
              .run = directory / "run",
              .metrics = {MeanAbsoluteError({.target = "y"})},
              .loggers = {Csv()},
              .log_every = 2,
              .log_norms = true});
  run.fit();
  run.trainer.test(run.validation);
  const std::vector<std::string> lines = read_lines(directory / "run/metrics.jsonl");
  ASSERT_EQ(lines.size(), 5u + 2u);
  EXPECT_TRUE(lines[0].starts_with("{\"epoch\":0,\"step\":2,\"train_loss\":")) << lines[0];
  for (const char* key : {"train_mean_error", "gradient_norm", "weight_norm", "learning_rate"}) {
    EXPECT_NE(lines[0].find(text("\"", key, "\":")), std::string::npos) << key << lines[0];
  }
  EXPECT_EQ(lines[0].find("state_hash"), std::string::npos);
  EXPECT_TRUE(lines[2].starts_with("{\"epoch\":0,\"step\":5,")) << lines[2];
  for (const char* key : {"validation_loss", "validation_mae", "validation_rows", "state_hash"}) {
    EXPECT_NE(lines[2].find(text("\"", key, "\":")), std::string::npos) << key << lines[2];
  }
  EXPECT_NE(lines.back().find("\"test_mae\":"), std::string::npos) << lines.back();
  EXPECT_GE(read_lines(directory / "run/log.csv").size(), 8u);
}

}  // namespace
}  // namespace binade::train::loop_results_test
