// The Trainer in process: early stopping and best weights on scripted validation losses,
// accumulation, clipping, prediction, and what a run writes.
#include <binade/core/create.h>
#include <binade/core/file_system.h>
#include <binade/core/ops.h>
#include <binade/kernels/base/error.h>
#include <binade/nn/linear.h>
#include <binade/optim/sgd.h>
#include <binade/train/trainer.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <regex>

#include "tests/data/fake_dataset.h"

namespace binade::train {
namespace {

namespace fs = std::filesystem;
using Losses = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Pictures of 1 x 4 pixels, of which the one of the label is lit; at every third index, the next.
class LitPixels : public data::Dataset {
 public:
  explicit LitPixels(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  data::Sample get(int64_t index) const override {
    data::Sample sample{data::make_image(1, 4, 1), index % 4};
    sample.image.pixels[static_cast<size_t>((index + (index % 3 == 0)) % 4)] = 255;
    return sample;
  }
  int64_t class_count() const override { return 4; }
  std::vector<std::string> class_names() const override { return {"0", "1", "2", "3"}; }
  int channels() const override { return 1; }
  std::string describe(int64_t index) const override { return text("lit/", index); }

 private:
  int64_t size_;
};

// Its n-th evaluation gives the n-th scripted loss on label 0; without a script, pixels are logits.
class ScriptedModel : public nn::Module {
 public:
  explicit ScriptedModel(Losses script = {})
      : weight(zeros({4})), counter(zeros({1})), script_(std::move(script)) {
    register_parameter("weight", weight);
    register_buffer("counter", counter);
  }
  Tensor forward(const Tensor& x) override {
    evaluated_in_training |= is_training();
    if (script_.empty()) {
      return flatten(x, 1);
    }
    const Tensor logits = zeros({x.size(0), 2});
    // log(1 + (exp(loss) - 1)) is the cross entropy.
    slice(logits, 1, 1, 2).fill_(std::log(std::expm1(script_.at(evaluations_++))));
    return logits;
  }

  Tensor weight, counter;
  bool evaluated_in_training = false;

 private:
  Losses script_;
  size_t evaluations_ = 0;
};

// The gradient of every weight is 1; the buffer counts the calls.
TrainingStep unit_step(ScriptedModel& model) {
  return [&model](nn::Module&, const data::Batch&) {
    {
      NoGradGuard guard;
      model.counter.fill_(model.counter.item() + 1);
    }
    return sum(model.weight);
  };
}

// A run of one step of size 1 per epoch: after epoch e all weights are -(e + 1).
struct ScriptedRun {
  ScriptedRun(const Losses& script, TrainerOptions options)
      : model(script),
        optimizer(model.parameters(), {.lr = 1}),
        trainer({.model = model, .optimizer = optimizer}, with_step(std::move(options))) {}

  TrainerOptions with_step(TrainerOptions options) {
    options.step = unit_step(model);
    options.progress = false;
    return options;
  }
  void fit() { trainer.fit(train, &validation); }
  // The epoch whose parameters and buffers the model has, or -1.
  int64_t epoch_of_weights() const {
    const double steps = model.counter.item();
    for (int i = 0; i < 4; ++i) {
      if (model.weight.at(i) != -steps) {
        return -1;
      }
    }
    return static_cast<int64_t>(steps) - 1;
  }

  LitPixels pictures{1};
  data::Loader train{pictures, {.batch = 1, .workers = 0}};
  data::Loader validation{pictures, {.batch = 1, .workers = 0}};
  ScriptedModel model;
  optim::Sgd optimizer;
  Trainer trainer;
};

struct EarlyStop {
  const char* what;
  Losses losses;
  int64_t patience, epochs, best;  // how many epochs ran, and which was the best
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
    ScriptedRun run(c.losses, {.epochs = 6, .patience = c.patience});
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
  optim::Sgd optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
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
  // 256: full windows only. 300: the last one has five micro-batches of 8 and one of 4.
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
  double expected;  // what one step of size 1 takes off each of the four weights
};

TEST(TrainerTest, ClippingBoundsTheNormOfTheTrueGradient) {
  const ClippedStep cases[] = {
      {std::nullopt, 1, 1}, {10, 1, 1}, {0.5, 1, 0.25}, {0.5, 4, 0.25}, {2.5, 4, 1}};
  const LitPixels pictures(4);
  for (const ClippedStep& c : cases) {
    for (const bool scaled : {false, true}) {
      SCOPED_TRACE(text("clip_norm ", c.clip_norm.value_or(0), ", scaled ", scaled));
      ScriptedModel model;
      optim::Sgd optimizer(model.parameters(), {.lr = 1});
      optim::LossScaler scaler = optim::LossScaler::fixed(1024);
      Trainer trainer(
          {.model = model, .optimizer = optimizer, .scaler = scaled ? &scaler : nullptr},
          {.epochs = 1,
           .accumulate = c.accumulate,
           .clip_norm = c.clip_norm,
           .progress = false,
           .step = unit_step(model)});
      data::Loader loader(pictures, {.batch = 4 / c.accumulate, .workers = 0});
      trainer.fit(loader);
      EXPECT_EQ(trainer.steps(), 1);
      EXPECT_NEAR(model.weight.at(0), -c.expected, 1e-6);
      EXPECT_NEAR(model.weight.at(3), -c.expected, 1e-6);
    }
  }
}

TEST(TrainerTest, ValidationIsTheMeanOverSamples) {
  ScriptedModel model;
  optim::Sgd optimizer(model.parameters(), {.lr = 1});
  Trainer trainer({.model = model, .optimizer = optimizer}, {.progress = false});
  const LitPixels pictures(12);
  const double lit = std::exp(1.0) + 3;
  for (int64_t batch : {1, 5, 12, 100}) {
    data::Loader loader(pictures, {.batch = batch, .workers = 0});
    const Evaluation evaluation = trainer.validate(loader);
    EXPECT_EQ(evaluation.samples, 12);
    EXPECT_DOUBLE_EQ(evaluation.accuracy, 8.0 / 12);
    EXPECT_NEAR(evaluation.loss, std::log(lit) - 8.0 / 12, 1e-6);
  }
  EXPECT_FALSE(model.evaluated_in_training);
}

TEST(TrainerTest, PredictsTheClassOfTheLargestLogit) {
  ScriptedModel model;
  optim::Sgd optimizer(model.parameters(), {.lr = 1});
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
  optim::Sgd optimizer(model.parameters(), {.lr = 1});
  Trainer trainer({.model = model, .optimizer = optimizer}, {.progress = false});
  EXPECT_EQ(trainer.predict(zeros({2, 3, 4, 4})).size(), 2U);
  EXPECT_TRUE(model.is_training());
  EXPECT_FALSE(model.fc.is_training());
}

// An empty directory, the current one while it exists.
class TrainerFileTest : public ::testing::Test {
 protected:
  TrainerFileTest()
      : before_(fs::current_path()),
        path_(fs::temp_directory_path() / ("binade-trainer-" + std::to_string(getpid()))) {
    fs::create_directory(path_);
    fs::current_path(path_);
  }
  ~TrainerFileTest() override {
    fs::current_path(before_);
    fs::remove_all(path_);
  }

  static std::vector<std::string> lines_of(const std::string& path) {
    const std::vector<std::byte> bytes = read_file(path);
    const std::string all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::regex line("([^\n]+)\n");
    std::vector<std::string> lines;
    for (std::sregex_iterator at(all.begin(), all.end(), line), end; at != end; ++at) {
      lines.push_back((*at)[1]);
    }
    return lines;
  }
  // "name=value" of every field of a flat JSON object, in order.
  static std::vector<std::string> fields_of(const std::string& line) {
    const std::regex field("\"(\\w+)\":(\"[^\"]*\"|[^,}]+)");
    std::vector<std::string> fields;
    for (std::sregex_iterator at(line.begin(), line.end(), field), end; at != end; ++at) {
      const std::string name = (*at)[1];
      const bool varies = name == "samples_per_second" || name == "state_hash";
      fields.push_back(name + "=" + (varies ? "*" : std::string((*at)[2])));
    }
    return fields;
  }

 private:
  fs::path before_, path_;
};

TEST_F(TrainerFileTest, WritesALineOfMetricsPerEpoch) {
  fs::create_directory("run");
  // The third loss is that of the test.
  ScriptedRun run({std::log(2), kNan, std::log(2)},
                  {.epochs = 2, .run = "run", .precision = "bf16", .augment = "crop"});
  run.fit();
  EXPECT_EQ(run.trainer.test(run.validation).accuracy, 1);
  const std::vector<std::string> lines = lines_of("run/metrics.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  using Fields = std::vector<std::string>;
  Fields first = fields_of(lines[0]);
  ASSERT_GT(first.size(), 2U);
  EXPECT_NEAR(std::stod(first[2].substr(first[2].find('=') + 1)), std::log(2), 1e-6) << first[2];
  first[2] = "validation_loss=*";
  EXPECT_EQ(first, (Fields{"epoch=0", "train_loss=0.0", "validation_loss=*",
                           "validation_accuracy=1.0", "samples_per_second=*", "learning_rate=1.0",
                           "loss_scale=1.0", "skipped_steps=0", "precision=\"bf16\"", "workers=0",
                           "augment=\"crop\"", "decode_errors=0", "state_hash=*"}));
  Fields second = fields_of(lines[1]);
  ASSERT_GT(second.size(), 4U);
  EXPECT_EQ(second[1], "train_loss=-4.0");
  EXPECT_EQ(second[2], "validation_loss=null");
  EXPECT_EQ(second[4], "test_accuracy=1.0");
  const std::regex hash(".*\"state_hash\":\"([0-9a-f]{16})\".*");
  std::smatch hashes[2];
  ASSERT_TRUE(std::regex_match(lines[0], hashes[0], hash)) << lines[0];
  ASSERT_TRUE(std::regex_match(lines[1], hashes[1], hash)) << lines[1];
  EXPECT_NE(hashes[0][1].str(), hashes[1][1].str());
}

TEST_F(TrainerFileTest, SkippedStepsAndTheScaleAreInTheMetrics) {
  fs::create_directory("run");
  ScriptedModel model;
  optim::Sgd optimizer(model.parameters(), {.lr = 1});
  optim::LossScaler scaler = optim::LossScaler::fixed(1024);
  const TrainingStep step = [&model](nn::Module&, const data::Batch& batch) {
    const bool overflows = batch.first == 1;
    return sum(model.weight) * (overflows ? std::numeric_limits<double>::infinity() : 1.0);
  };
  Trainer trainer({.model = model, .optimizer = optimizer, .scaler = &scaler},
                  {.epochs = 2, .run = "run", .progress = false, .step = step});
  const LitPixels pictures(3);
  data::Loader loader(pictures, {.batch = 1, .workers = 0});
  trainer.fit(loader);
  EXPECT_EQ(trainer.steps(), 6);
  EXPECT_EQ(model.weight.at(0), -4) << "two of six steps overflow";
  const std::vector<std::string> lines = lines_of("run/metrics.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  for (const char* field : {"\"loss_scale\":1024.0,", "\"skipped_steps\":2,"}) {
    EXPECT_NE(lines[1].find(field), std::string::npos) << lines[1];
  }
  EXPECT_EQ(lines[1].find("validation"), std::string::npos) << lines[1];
}

TEST_F(TrainerFileTest, ARunWithoutDirectoryWritesNothing) {
  ScriptedRun run({2, 1, 3, 1}, {.epochs = 3, .checkpoint_every = 1});
  run.fit();
  run.trainer.test(run.validation);
  EXPECT_EQ(run.epoch_of_weights(), 1);
  EXPECT_TRUE(fs::is_empty("."));
}

TEST_F(TrainerFileTest, RefusesBadOptions) {
  EXPECT_THROW(ScriptedRun({}, {.epochs = 0}), Error);
  EXPECT_THROW(ScriptedRun({}, {.accumulate = 0}), Error);
  EXPECT_THROW(ScriptedRun({}, {.patience = -1}), Error);
  EXPECT_THROW(ScriptedRun({}, {.checkpoint_every = -1}), Error);
  EXPECT_THROW(ScriptedRun({}, {.resume = true}), Error);
  EXPECT_TRUE(fs::is_empty("."));
}

}  // namespace
}  // namespace binade::train
