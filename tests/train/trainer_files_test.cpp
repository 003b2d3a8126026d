// Tests the Trainer's files: the lines of metrics.jsonl, and a run without a directory.
#include <binade/core/io/file_system.h>
#include <binade/kernels/base/math_mode.h>
#include <binade/nn/linear.h>
#include <binade/optim/plateau.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>

#include "tests/data/fake_dataset.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint_samples.h"
#include "tests/train/scripted_run.h"

namespace binade::train::trainer_files_test {
namespace {

namespace fs = std::filesystem;
using binade::testing::TemporaryDirectory;
using test::LitPixels, test::ScriptedModel, test::ScriptedRun, test::Warnings;

// Makes an empty directory and changes to it for its lifetime.
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
  // Returns "name=value" for every field of a flat JSON object, in order.
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
  // The third loss is that of the test data.
  ScriptedRun run(
      {std::log(2), std::numeric_limits<double>::quiet_NaN(), std::log(2)},
      {.epochs = 2, .run = "run", .on_nan = OnNan::ignore, .notes = {{"augment", "crop"}}});
  run.fit();
  EXPECT_FALSE(run.trainer.test(run.validation).has("accuracy"));
  const std::vector<std::string> lines = lines_of("run/metrics.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  using Fields = std::vector<std::string>;
  Fields first = fields_of(lines[0]);
  ASSERT_GT(first.size(), 3U);
  EXPECT_NEAR(std::stod(first[3].substr(first[3].find('=') + 1)), std::log(2), 1e-6) << first[3];
  first[3] = "validation_loss=*";
  EXPECT_EQ(first, (Fields{"epoch=0", "step=1", "train_loss=0", "validation_loss=*",
                           "samples_per_second=*", "learning_rate=1", "loss_scale=1",
                           "skipped_steps=0", "workers=0", "decode_errors=0", "precision=\"fp32\"",
                           "mode=\"fast\"", "augment=\"crop\"", "state_hash=*"}));
  Fields second = fields_of(lines[1]);
  ASSERT_GT(second.size(), 5U);
  EXPECT_EQ(second[2], "train_loss=-4");
  EXPECT_EQ(second[3], "validation_loss=null");
  const std::regex hash(".*\"state_hash\":\"([0-9a-f]{16})\".*");
  std::smatch hashes[2];
  ASSERT_TRUE(std::regex_match(lines[0], hashes[0], hash)) << lines[0];
  ASSERT_TRUE(std::regex_match(lines[1], hashes[1], hash)) << lines[1];
  EXPECT_NE(hashes[0][1].str(), hashes[1][1].str());
}

// A linear layer over pixels, with a given precision.
class Pixels : public nn::Module {
 public:
  explicit Pixels(const Precision& precision) {
    register_module("fc", fc);
    to(Device{}, precision);
  }
  Tensor forward(const Tensor& x) override { return fc(flatten(x.to(fc.weight.dtype()), 1)); }
  nn::Linear fc{{.in = 4, .out = 4}};
};

// The additional fields in a classifier's line; the precision is the model's.
TEST_F(TrainerFileTest, AccuracyAndPrecisionOfAClassifier) {
  const std::pair<Precision, const char*> cases[] = {{Precision::full(), "fp32"},
                                                     {Precision::mixed(DType::bf16), "bf16"},
                                                     {Precision::autocast(DType::f16), "fp16"},
                                                     {Precision::half(DType::bf16), "bf16"}};
  const LitPixels pictures(8);
  for (const auto& [precision, name] : cases) {
    Pixels model(precision);
    optim::SGD sgd(model.parameters(), {.lr = 0.1});
    data::Loader loader(pictures, {.batch = 4, .workers = 0});
    Trainer trainer({.model = model, .optimizer = sgd},
                    {.epochs = 1, .run = "run", .overwrite = true, .progress = false});
    trainer.fit(loader, &loader);
    EXPECT_TRUE(trainer.test(loader).has("accuracy"));
    const std::vector<std::string> lines = lines_of("run/metrics.jsonl");
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_NE(lines[0].find(text("\"precision\":\"", name, "\"")), std::string::npos) << lines[0];
    for (const char* field : {"\"validation_accuracy\":", "\"test_accuracy\":"}) {
      EXPECT_NE(lines[0].find(field), std::string::npos) << lines[0];
    }
  }
}

// The modes round differently, so a run must resume in the mode in which it began.
TEST_F(TrainerFileTest, ResumesInTheSameModeOnly) {
  fs::create_directory("run");
  ScriptedRun({0.5}, {.epochs = 1, .run = "run"}).fit();
  EXPECT_TRUE(ScriptedRun({}, {.epochs = 1, .run = "run", .resume = true}).trainer.resumed());
  const kernels::MathModeGuard guard(kernels::MathMode::precise);
  try {
    ScriptedRun({}, {.epochs = 1, .run = "run", .resume = true});
    FAIL() << "a run was resumed in another mode";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("resume: got mode = precise"), std::string::npos)
        << error.what();
  }
}

TEST_F(TrainerFileTest, SkippedStepsAndTheScaleAreInTheMetrics) {
  fs::create_directory("run");
  ScriptedModel model;
  optim::SGD optimizer(model.parameters(), {.lr = 1});
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
  for (const char* field : {"\"loss_scale\":1024,", "\"skipped_steps\":2,"}) {
    EXPECT_NE(lines[1].find(field), std::string::npos) << lines[1];
  }
  EXPECT_EQ(lines[1].find("validation"), std::string::npos) << lines[1];
}

TEST_F(TrainerFileTest, ARunWithoutDirectoryWritesNothing) {
  ScriptedRun run({2, 1, 3, 1}, {.epochs = 3});
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
  EXPECT_THROW(ScriptedRun({}, {.overwrite = true}), Error);
  EXPECT_THROW(ScriptedRun({}, {.checkpoint_every = 1}), Error);
  EXPECT_THROW(ScriptedRun({}, {.run = "run", .resume = true, .overwrite = true}), Error);
  EXPECT_TRUE(fs::is_empty("."));
}

// Even after fit() has ended, a run writes only while it holds the lock.
TEST_F(TrainerFileTest, ResultsAreNotWrittenAfterALoss) {
  ScriptedRun run({}, {.epochs = 1, .run = "run"});
  run.trainer.fit(run.train);
  run.trainer.save_model();
  const auto model = fs::last_write_time("run/model.safetensors");
  const std::vector<std::string> lines = lines_of("run/metrics.jsonl");
  std::ofstream("run/lock") << "another";
  EXPECT_NE(error_of([&] { run.trainer.save_model(); }).find("was taken over"), std::string::npos);
  EXPECT_EQ(fs::last_write_time("run/model.safetensors"), model);
  EXPECT_EQ(lines_of("run/metrics.jsonl"), lines);
  EXPECT_NE(error_of([] { ScriptedRun({}, {}).trainer.save_model(); }).find("without a run"),
            std::string::npos);
}

// A new run in the directory of an old one: its first checkpoint would be older than those there
// and would be deleted, and a resume would load the old weights.
TEST_F(TrainerFileTest, AFreshRunInAUsedDirectoryIsRefused) {
  ScriptedRun old({}, {.epochs = 5, .run = "run"});
  old.trainer.fit(old.train);
  const std::vector<std::string> before = lines_of("run/metrics.jsonl");
  try {
    ScriptedRun({}, {.epochs = 1, .run = "run"});
    FAIL() << "no error";
  } catch (const Error& error) {
    for (const char* part : {"got run,", "not empty", "resume", "overwrite"}) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(lines_of("run/metrics.jsonl"), before);
  EXPECT_TRUE(fs::exists("run/checkpoint/step-00000005"));
}

TEST_F(TrainerFileTest, AnotherFileInTheDirectoryIsNoRun) {
  fs::create_directory("run");
  write_file_durably("run/letter.txt", std::string("dear"));
  EXPECT_THROW(ScriptedRun({}, {.run = "run"}), Error);
  ScriptedRun run({}, {.epochs = 1, .run = "run", .overwrite = true});
  run.trainer.fit(run.train);
  EXPECT_EQ(lines_of("run/metrics.jsonl").size(), 1U);
  EXPECT_TRUE(fs::exists("run/letter.txt"));
}

TEST_F(TrainerFileTest, OverwriteBeginsAnewAndResumeGoesOn) {
  {
    ScriptedRun old({}, {.epochs = 5, .run = "run"});
    old.trainer.fit(old.train);
  }
  {
    ScriptedRun fresh({}, {.epochs = 1, .run = "run", .overwrite = true});
    EXPECT_FALSE(fresh.trainer.resumed());
    fresh.trainer.fit(fresh.train);
  }
  EXPECT_EQ(lines_of("run/metrics.jsonl").size(), 1U);
  EXPECT_FALSE(fs::exists("run/checkpoint/step-00000005"));
  ScriptedRun resumed({}, {.epochs = 3, .run = "run", .resume = true});
  EXPECT_TRUE(resumed.trainer.resumed());
  EXPECT_EQ(resumed.trainer.steps(), 1);
  EXPECT_EQ(resumed.epoch_of_weights(), 0);
  resumed.trainer.fit(resumed.train);
  EXPECT_EQ(resumed.epoch_of_weights(), 2);
}

// parts that only some runs have ------------------------------------------------------------------

TEST(ResumedRun, AsManyBadEpochsAsBefore) {
  const TemporaryDirectory directory;
  const test::Losses losses{1, 3, 3, 3, 3, 3, 3};
  ScriptedRun whole(losses, {.epochs = 7, .patience = 4, .run = directory / "whole"});
  whole.fit();
  EXPECT_EQ(whole.trainer.epoch(), 5);
  ScriptedRun(losses, {.epochs = 3, .patience = 4, .run = directory / "run"}).fit();
  ScriptedRun resumed({3, 3, 3, 3},
                      {.epochs = 7, .patience = 4, .run = directory / "run", .resume = true});
  resumed.fit();
  EXPECT_EQ(resumed.trainer.epoch(), 5);
  EXPECT_EQ(resumed.epoch_of_weights(), 0) << "the best one";
}

TEST(ResumedRun, APlateauContinues) {
  const auto run = [](const std::string& directory, int64_t epochs, bool resume) {
    ScriptedModel model(test::Losses(9, 2.0));
    optim::SGD optimizer(model.parameters(), {.lr = 1});
    optim::ReduceLROnPlateau plateau(optimizer, {.factor = 0.5, .patience = 2, .cooldown = 1});
    Trainer trainer({.model = model, .optimizer = optimizer, .plateau = &plateau},
                    {.epochs = epochs,
                     .patience = 0,
                     .run = directory,
                     .resume = resume,
                     .progress = false,
                     .step = test::unit_step(model),
                     .sanity_batches = 0});
    const test::LitPixels pictures(1);
    data::Loader loader(pictures, {.batch = 1, .workers = 0});
    trainer.fit(loader, &loader);
    std::string state = text("lr ", optimizer.lr());
    for (const auto& [name, value] : plateau.state_scalars()) {
      state += text(", ", name, " ", value);
    }
    return state;
  };
  for (int64_t first = 1; first < 9; ++first) {
    const TemporaryDirectory directory;
    const std::string expected = run(directory / "whole", 9, false);
    run(directory / "run", first, false);
    EXPECT_EQ(run(directory / "run", 9, true), expected) << first;
  }
}

// data --------------------------------------------------------------------------------------------

// Pictures in a given order, with labels.
class Listed : public data::test::FakeDataset {
 public:
  Listed(std::vector<int64_t> names, std::vector<int64_t> labels)
      : FakeDataset(static_cast<int64_t>(names.size())),
        names_(std::move(names)),
        labels_(std::move(labels)) {}
  data::Sample get(int64_t index) const override {
    data::Sample sample = FakeDataset::get(names_.at(static_cast<size_t>(index)));
    sample.label = labels_.at(static_cast<size_t>(index));
    return sample;
  }
  std::string describe(int64_t index) const override {
    return FakeDataset::describe(names_.at(static_cast<size_t>(index)));
  }
  std::optional<int64_t> label(int64_t index) const override {
    return labels_.at(static_cast<size_t>(index));
  }

 private:
  std::vector<int64_t> names_, labels_;
};

std::string resume_on(const std::string& run, const Listed& train_data, const Listed& validation,
                      int64_t epochs, bool force = false) {
  ScriptedModel model;
  optim::SGD sgd(model.parameters(), {.lr = 0.01});
  data::Loader train(train_data, {.batch = 2, .workers = 0});
  data::Loader other(validation, {.batch = 2, .workers = 0});
  return error_of([&] {
    Trainer({.model = model, .optimizer = sgd}, {.epochs = epochs,
                                                 .run = run,
                                                 .resume = epochs > 1,
                                                 .force = force,
                                                 .progress = false,
                                                 .step = test::unit_step(model)})
        .fit(train, &other);
  });
}

TEST(ResumedRun, OtherDataIsRefusedByName) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  const Listed data({1, 2, 3, 4}, {0, 1, 0, 1}), validation({7, 8}, {0, 1});
  ASSERT_EQ(resume_on(run, data, validation, 1), "none");
  const std::string metrics = contents(run + "/metrics.jsonl");
  struct Case {
    Listed train, validation;
    const char* error;
  };
  const Case kCases[] = {
      {{{1, 2, 3, 4}, {1, 0, 0, 1}}, validation, "got other labels in the train data"},
      {{{1, 2, 4, 3}, {0, 1, 1, 0}},
       validation,
       "got the same samples in another order in the train data"},
      {{{1, 2, 3, 5}, {0, 1, 0, 1}}, validation, "got other samples in the train data"},
      {{{1, 2, 3}, {0, 1, 0}}, validation, "got 3 samples instead of 4 in the train data"},
      {data, {{7, 9}, {0, 1}}, "got other samples in the validation data"},
      {data, {{7, 8}, {1, 0}}, "got other labels in the validation data"}};
  for (const Case& test : kCases) {
    const std::string error = resume_on(run, test.train, test.validation, 2);
    EXPECT_NE(error.find(test.error), std::string::npos) << error;
    EXPECT_NE(error.find("--force"), std::string::npos) << error;
    EXPECT_EQ(contents(run + "/metrics.jsonl"), metrics);
  }
  {
    Warnings warnings;
    EXPECT_EQ(resume_on(run, kCases[0].train, validation, 2, true), "none");
    EXPECT_NE(warnings.all.find("other labels"), std::string::npos) << warnings.all;
  }
  EXPECT_EQ(resume_on(run, kCases[0].train, validation, 3), "none") << "now it is the run's data";
}

TEST(ResumedRun, OtherSettingsNeedForce) {
  const TemporaryDirectory directory;
  const std::string path = directory / "run";
  {
    ScriptedRun first({}, {.epochs = 1, .run = path, .settings = {{"lr", "1"}}});
    first.trainer.fit(first.train);
  }
  const auto resume = [&](bool force) {
    return error_of([&] {
      ScriptedRun(
          {},
          {.epochs = 1, .run = path, .resume = true, .force = force, .settings = {{"lr", "2"}}});
    });
  };
  EXPECT_NE(resume(false).find("got lr = 2"), std::string::npos) << resume(false);
  Warnings warnings;
  EXPECT_EQ(resume(true), "none");
  EXPECT_NE(warnings.all.find("got lr = 2, but"), std::string::npos) << warnings.all;
}

}  // namespace
}  // namespace binade::train::trainer_files_test
