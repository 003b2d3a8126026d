// A model whose activations overflow f16 runs in the Trainer under each policy for an overflow at
// the floor of the loss scale.
#include <binade/binade.h>
#include <binade/core/observe/warning.h>
#include <gtest/gtest.h>
#include <tests/data/fake_dataset.h>
#include <tests/kernels/support/test_device.h>
#include <tests/support/temporary_directory.h>

#include <cmath>
#include <fstream>
#include <sstream>

namespace binade::train::trainer_floor_test {
namespace {

constexpr int64_t kSamples = 40, kBatch = 8, kBatches = kSamples / kBatch;
// The scale falls from 4 to the floor of 1 in two steps; the third overflow is at the floor.
constexpr int64_t kBackoffs = 2;

// Between the layers, values are multiplied by 10^6: infinite in f16, finite in f32.
class SteepModel : public nn::Module {
 public:
  SteepModel() : first({.in = 48, .out = 16}), second({.in = 16, .out = 10}) {
    register_module("first", first);
    register_module("second", second);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor h = first(flatten(x.to(first.weight.dtype()), 1)) * 1e3 * 1e3;
    return second(relu(h) * 1e-6);
  }
  nn::Linear first, second;
};

struct SteepRun {
  explicit SteepRun(optim::AtFloor policy, Precision precision = Precision::mixed(DType::f16)) {
    manual_seed(7);
    model.emplace();
    model->to(kernels::test_device(), precision);
    adam.emplace(model->parameters(), optim::AdamWOptions{.lr = 0.01});
    scaler.emplace(optim::LossScalerOptions{.init_scale = 4, .min_scale = 1, .at_floor = policy});
  }
  // Returns the number of steps.
  int64_t fit(TrainerOptions options) {
    Trainer trainer({.model = *model, .optimizer = *adam, .scaler = &*scaler}, std::move(options));
    trainer.fit(loader);
    return trainer.steps();
  }
  std::vector<double> weights() const {
    std::vector<double> all;
    for (const auto& [name, tensor] : model->state()) {
      const Tensor host = tensor.to(Device{});
      for (int64_t i = 0; i < host.numel(); ++i) {
        all.push_back(host.at(i));
      }
    }
    return all;
  }

  data::test::FakeDataset pictures{kSamples};
  data::Loader loader{pictures,
                      {.batch = kBatch, .workers = 0, .seed = 3, .device = kernels::test_device()}};
  std::optional<SteepModel> model;
  std::optional<optim::AdamW> adam;
  std::optional<optim::LossScaler> scaler;
};

// Returns the weights of an f32 run that skips the first steps.
std::vector<double> weights_in_f32(int64_t epochs, int64_t left_out) {
  SteepRun run(optim::AtFloor::error, Precision::full());
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (const data::Batch& batch : run.loader.epoch(epoch)) {
      if (left_out-- <= 0) {
        classification_step(*run.model, batch).loss.backward();
        (void)run.adam->step();
      }
    }
  }
  return run.weights();
}

// Returns the sample numbers of a batch as the error lists them.
std::string samples_of(int64_t first, int64_t count) {
  SteepRun run(optim::AtFloor::error);
  std::string list;
  int64_t number = 0;
  for (const data::Batch& batch : run.loader.epoch(0)) {
    if (number >= first && number < first + count) {
      for (const int64_t index : batch.indices) {
        list += text(list.empty() ? "" : ", ", index);
      }
    }
    ++number;
  }
  return list;
}

TEST(TrainerAtTheFloor, AnErrorNamesTensorLayerCauseAndSamples) {
  for (int64_t accumulate : {1, 2}) {
    SteepRun run(optim::AtFloor::error);
    const std::vector<double> before = run.weights();
    try {
      run.fit({.epochs = 3, .accumulate = accumulate, .progress = false});
      FAIL() << "no error";
    } catch (const optim::OverflowAtFloor& error) {
      const std::string message = error.what();
      // With two micro-batches an epoch has 3 steps, the last with one micro-batch.
      const std::string samples = samples_of(kBackoffs * accumulate, accumulate);
      for (const std::string& part :
           {std::string("first.weight"), std::string("(layer first)"),
            std::string(kernels::test_device().is_cpu() ? "run again: forward overflow"
                                                        : "bad data or forward overflow"),
            text("(step ", kBackoffs, ", samples ", samples, " of the data set)")}) {
        EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
      }
    }
    EXPECT_EQ(run.weights(), before);
  }
}

TEST(TrainerAtTheFloor, ManySamplesAreNotAllNamed) {
  SteepRun run(optim::AtFloor::error);
  data::Loader large(
      run.pictures,
      {.batch = kSamples, .workers = 0, .shuffle = false, .device = kernels::test_device()});
  Trainer trainer({.model = *run.model, .optimizer = *run.adam, .scaler = &*run.scaler},
                  {.epochs = 9, .accumulate = 1, .progress = false});
  try {
    trainer.fit(large);
    FAIL() << "no error";
  } catch (const optim::OverflowAtFloor& error) {
    EXPECT_NE(std::string(error.what()).find("30, 31 and 8 more of the data set"),
              std::string::npos)
        << error.what();
  }
}

TEST(TrainerAtTheFloor, SkippingLeavesTheWeights) {
  SteepRun run(optim::AtFloor::skip);
  const std::vector<double> before = run.weights();
  EXPECT_THROW(run.fit({.epochs = 2, .progress = false}), Diverged) << "no step was applied";
  EXPECT_EQ(run.weights(), before);
  EXPECT_EQ(run.scaler->skipped_steps(), 2 * kBatches);
  EXPECT_EQ(run.scaler->scale(), 1);
}

TEST(TrainerAtTheFloor, ClippingAppliesFiniteSteps) {
  SteepRun run(optim::AtFloor::clip);
  const std::vector<double> before = run.weights();
  EXPECT_EQ(run.fit({.epochs = 2, .progress = false}), 2 * kBatches);
  EXPECT_EQ(run.scaler->skipped_steps(), kBackoffs);
  EXPECT_EQ(run.adam->step_count(), 2 * kBatches - kBackoffs);
  EXPECT_NE(run.weights(), before);
  for (const double weight : run.weights()) {
    EXPECT_TRUE(std::isfinite(weight));
  }
}

// On the CPU the step after the first overflow at the floor is in f32; on a device the host asks at
// the end of the epoch.
int64_t steps_in_f16() { return kernels::test_device().is_cpu() ? kBackoffs + 1 : kBatches; }

TEST(TrainerAtTheFloor, GoesOnInFullPrecision) {
  std::vector<std::string> warnings;
  const WarningHandler handler =
      set_warning_handler([&warnings](const std::string& text) { warnings.push_back(text); });
  for (const Precision& precision :
       {Precision::mixed(DType::f16), Precision::autocast(DType::f16)}) {
    SCOPED_TRACE(to_string(precision));
    warnings.clear();
    SteepRun run(optim::AtFloor::fp32, precision);
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(run.fit({.epochs = 4}), 4 * kBatches);
    const std::string shown = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(run.weights(), weights_in_f32(4, steps_in_f16()));
    EXPECT_EQ(run.model->precision(), Precision::full());
    for (const Parameter& parameter : run.model->parameters()) {
      EXPECT_EQ(parameter.value.dtype(), DType::f32);
    }
    const bool on_cpu = kernels::test_device().is_cpu();  // there, the cause is named, too
    ASSERT_EQ(warnings.size(), on_cpu ? 2U : 1U);
    if (on_cpu) {
      EXPECT_NE(warnings[0].find("cause: forward overflow"), std::string::npos) << warnings[0];
    }
    const std::string& last = warnings.back();
    EXPECT_NE(last.find(text("the run goes on in fp32 from step ", steps_in_f16())),
              std::string::npos)
        << last;
    EXPECT_NE(last.find("first.weight"), std::string::npos) << last;
    EXPECT_NE(shown.find(text("skipped ", steps_in_f16(), "/", 4 * kBatches)), std::string::npos)
        << shown;
  }
  set_warning_handler(handler);
}

TEST(TrainerAtTheFloor, FullPrecisionIsInTheCheckpoint) {
  const WarningHandler handler = set_warning_handler([](const std::string&) {});
  const binade::testing::TemporaryDirectory directory;
  TrainerOptions options{
      .epochs = 2, .run = directory.path() + "/run", .checkpoint_every = 4, .progress = false};
  SteepRun(optim::AtFloor::fp32).fit(options);
  options.epochs = 4;
  options.resume = true;
  SteepRun resumed(optim::AtFloor::fp32);
  EXPECT_EQ(resumed.fit(options), 4 * kBatches);
  // On a device the host asks the scaler at the checkpoint in step 4.
  const int64_t in_f16 = kernels::test_device().is_cpu() ? kBackoffs + 1 : 4;
  EXPECT_EQ(resumed.weights(), weights_in_f32(4, in_f16));
  std::ostringstream metrics;
  metrics << std::ifstream(options.run + "/metrics.jsonl").rdbuf();
  EXPECT_EQ(metrics.str().find("fp16"), std::string::npos) << metrics.str();
  set_warning_handler(handler);
}

TEST(TrainerAtTheFloor, AnOverflowInFullPrecisionIsAnError) {
  const WarningHandler handler = set_warning_handler([](const std::string&) {});
  SteepRun run(optim::AtFloor::fp32);
  const TrainingStep step = [](nn::Module& model, const data::Batch& batch) {
    return classification_step(model, batch).loss * NAN;
  };
  EXPECT_THROW(run.fit({.epochs = 3, .progress = false, .step = step}), optim::OverflowAtFloor);
  set_warning_handler(handler);
}

TEST(TrainerAtTheFloor, TheProgressLineNamesTheLayerOfTheLastOverflow) {
  SteepRun run(optim::AtFloor::skip);
  ::testing::internal::CaptureStdout();
  EXPECT_THROW(run.fit({.epochs = 1}), Diverged);
  const std::string shown = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(shown.find(text("skipped ", kBatches, "/", kBatches, ", last in first ")),
            std::string::npos)
      << shown;
}

}  // namespace
}  // namespace binade::train::trainer_floor_test
