// Tests runs with a loss, gradients or weights that are not finite: they skip the step, return to a
// checkpoint, or end because nothing helps.
#include <binade/nn/norm.h>
#include <binade/train/bad_loss_internal.h>
#include <tests/support/temporary_directory.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>

#include "tests/train/nan_runs.h"
#include "tests/train/scripted_run.h"

namespace binade::train::divergence_test {
namespace {

// The result equals that of a hand-written loop without the bad step.
TEST(Divergence, SkippedTheStepIsNotTaken) {
  for (const int64_t accumulate : {1, 2}) {
    NetRun run, by_hand;
    int64_t bad_step = -1, skipped = 0;
    run.fit({.epochs = 2,
             .accumulate = accumulate,
             .step = bad_in_one_batch(&bad_step),
             .on_nan = OnNan::skip});
    EXPECT_EQ(run.error, "");
    EXPECT_EQ(run.steps, 2 * kBatches / accumulate);

    manual_seed(3);
    by_hand.model.emplace();
    by_hand.model->to(kernels::test_device(), Precision::full());
    by_hand.sgd.emplace(by_hand.model->parameters(), optim::SGDOptions{.lr = run.lr});
    const TrainingStep step = bad_in_one_batch(&bad_step);
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      by_hand.loader.epoch(epoch);
      data::Batch batch;
      bool bad = false;
      for (int64_t n = 1; by_hand.loader.next(batch); ++n) {
        const Tensor loss = step(*by_hand.model, batch).loss;
        bad |= !std::isfinite(loss.detach().to(Device{}).item());
        loss.backward();
        if (n % accumulate != 0) {
          continue;
        }
        if (bad) {
          by_hand.sgd->zero_grad();
          ++skipped;
        } else {
          (void)by_hand.sgd->step({.divisor = static_cast<double>(accumulate)});
        }
        bad = false;
      }
    }
    EXPECT_EQ(skipped, 2);
    EXPECT_EQ(run.sgd->step_count(), by_hand.sgd->step_count());
    const Tensor got = run.model->fc.weight.detach().to(Device{}),
                 expected = by_hand.model->fc.weight.detach().to(Device{});
    EXPECT_EQ(std::memcmp(got.data<float>(), expected.data<float>(), 480 * sizeof(float)), 0);
  }
}

// The statistics of a skipped batch must not stay NaN.
TEST(Divergence, SkippedABatchLeavesNoBadStatistics) {
  struct Normed : DropoutNet {
    Normed() { register_module("norm", norm); }
    Tensor forward(const Tensor& x) override { return DropoutNet::forward(norm(x)); }
    nn::BatchNorm2d norm{{.channels = 3}};
  } model;
  model.to(kernels::test_device(), Precision::full());
  optim::SGD sgd(model.parameters(), {.lr = 0.01});
  const data::test::FakeDataset pictures(kSamples);
  data::Loader loader(pictures, {.batch = kBatch, .workers = 0, .device = kernels::test_device()});
  auto calls = std::make_shared<int64_t>(0);
  const TrainingStep step = [calls](nn::Module& net, const data::Batch& batch) {
    if (++*calls == 3) {
      const NoGradGuard guard;
      slice(batch.images, 0, 1, 2).fill_(INFINITY);
    }
    return classification_step(net, batch).loss;
  };
  Trainer trainer({.model = model, .optimizer = sgd},
                  {.epochs = 1, .progress = false, .step = step, .on_nan = OnNan::skip});
  trainer.fit(loader);
  EXPECT_EQ(sgd.step_count(), kBatches - 1);
  for (const auto& [name, tensor] : model.state()) {
    EXPECT_TRUE(std::isfinite(amax(abs(tensor.detach().to(DType::f64))).to(Device{}).item()))
        << name;
  }
}

// A fault in the weights that no later step can repair ends the run under every policy.
TEST(Divergence, SkippingAllIsAnError) {
  for (const OnNan on_nan : {OnNan::skip, OnNan::roll_back}) {
    const binade::testing::TemporaryDirectory directory;
    NetRun run;
    const TrainingStep step = [](nn::Module& model, const data::Batch& batch) {
      return classification_step(model, batch).loss / 0.0;
    };
    run.fit({.epochs = 3, .run = directory / "run", .step = step, .on_nan = on_nan});
    if (on_nan == OnNan::skip) {
      run.expect_error({text("none of the ", kBatches, " steps of epoch 0 was applied")});
    } else {
      run.expect_error({on_cpu() ? "got a loss of inf" : "not finite",
                        "returned to a checkpoint 3 times already"});
    }
    EXPECT_EQ(run.sgd->step_count(), 0);
    EXPECT_TRUE(run.is_finite());
  }
}

TEST(Divergence, AFixedScaleThatSkipsAllIsAnError) {
  NetRun run;
  optim::LossScaler scaler = optim::LossScaler::fixed(0x1p120);
  const TrainingStep step = [](nn::Module& model, const data::Batch& batch) {
    return classification_step(model, batch).loss * 0x1p20;
  };
  Trainer trainer({.model = *run.model, .optimizer = *run.sgd, .scaler = &scaler},
                  {.epochs = 2, .progress = false, .step = step});
  try {
    trainer.fit(run.loader);
    FAIL() << "no error";
  } catch (const Diverged& error) {
    EXPECT_NE(std::string(error.what()).find("at the fixed loss scale"), std::string::npos)
        << error.what();
  }
}

// With a scaler, NaN weights make every gradient NaN: all steps are skipped, and nothing shows why.
TEST(Divergence, BadWeightsUnderALossScalerAreAnError) {
  NetRun run;
  optim::LossScaler scaler;
  const NoGradGuard guard;
  slice(run.model->fc.bias, 0, 3, 4).fill_(NAN);
  const GradGuard record;
  Trainer trainer({.model = *run.model, .optimizer = *run.sgd, .scaler = &scaler},
                  {.epochs = 1, .progress = false});
  try {
    trainer.fit(run.loader);
    FAIL() << "no error";
  } catch (const Diverged& error) {
    EXPECT_NE(std::string(error.what()).find("fc.bias is not finite"), std::string::npos)
        << error.what();
  }
}

// A run in which some calls of the step give a bad loss.
struct RolledBack : NetRun {
  explicit RolledBack(const std::string& path, bool scheduled) : NetRun(0.5), path(path) {
    if (scheduled) {
      schedule.emplace(*sgd, optim::StepLROptions{.step_size = 2 * kBatches, .gamma = 0.25});
    }
  }
  void train(int64_t epochs, bool resume, const std::set<int64_t>& bad_calls) {
    auto calls = std::make_shared<int64_t>(0);
    const TrainingStep step = [calls, bad_calls](nn::Module& net, const data::Batch& batch) {
      Tensor loss = classification_step(net, batch).loss;
      return bad_calls.contains(++*calls) ? loss / 0.0 : loss;
    };
    Trainer trainer(
        {.model = *model, .optimizer = *sgd, .schedule = schedule ? &*schedule : nullptr},
        {.epochs = epochs,
         .run = path,
         .resume = resume,
         .progress = false,
         .step = step,
         .on_nan = OnNan::roll_back,
         .roll_back = {.factor = 0.125, .most = 2}});
    test::Warnings warnings;
    trainer.fit(loader);
    said = warnings.all;
    steps = trainer.steps();
    rollbacks = trainer.rollbacks();
  }
  std::string path, said;
  std::optional<optim::StepLR> schedule;
  int64_t rollbacks = 0;
};

TEST(Divergence, RolledBackTheRunGoesOnWithASmallerRate) {
  for (const bool scheduled : {false, true}) {
    const binade::testing::TemporaryDirectory directory;
    RolledBack run(directory / "run", scheduled);
    run.train(2, false, {kBatches + 3});
    EXPECT_EQ(run.steps, 2 * kBatches);
    EXPECT_EQ(run.rollbacks, 1);
    EXPECT_NE(run.said.find("return number 1 of at most 2"), std::string::npos) << run.said;
    EXPECT_NE(run.said.find(text("to step ", kBatches)), std::string::npos) << run.said;
    EXPECT_TRUE(run.is_finite());
    EXPECT_EQ(run.sgd->lr(), scheduled ? 0.5 / 8 / 4 : 0.5 / 8);  // the next rate of the schedule
    std::ifstream metrics(directory / "run/metrics.jsonl");
    const std::string lines{std::istreambuf_iterator<char>(metrics), {}};
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);

    RolledBack resumed(directory / "run", scheduled);
    resumed.train(3, true, {});
    EXPECT_EQ(resumed.rollbacks, 1);
    EXPECT_EQ(resumed.steps, 3 * kBatches);
    EXPECT_EQ(resumed.sgd->lr(), scheduled ? 0.5 / 8 / 4 : 0.5 / 8);
  }
}

// The second return loads a checkpoint that already has the reduced rate.
TEST(Divergence, RolledBackTwiceTheRateFallsTwice) {
  for (const bool scheduled : {false, true}) {
    const binade::testing::TemporaryDirectory directory;
    RolledBack run(directory / "run", scheduled);
    run.train(3, false, {kBatches + 3, 2 * kBatches + 5});
    EXPECT_EQ(run.steps, 3 * kBatches);
    EXPECT_EQ(run.rollbacks, 2);
    EXPECT_EQ(run.sgd->lr(), scheduled ? 0.5 / 64 / 4 : 0.5 / 64);
  }
}

// The bits equal those of a run that starts there with the reduced rate.
TEST(Divergence, RolledBackNothingOfTheBadStepsStays) {
  const binade::testing::TemporaryDirectory directory;
  RolledBack run(directory / "run", false);
  run.train(2, false, {kBatches + 4});
  const Tensor got = run.model->fc.weight.detach().to(Device{});
  RolledBack again(directory / "again", false);
  again.train(1, false, {});
  again.sgd->set_lr(0.5 / 8);
  again.loader.epoch(1);
  data::Batch batch;
  while (again.loader.next(batch)) {
    classification_step(*again.model, batch).loss.backward();
    (void)again.sgd->step();
    again.sgd->zero_grad();
  }
  const Tensor expected = again.model->fc.weight.detach().to(Device{});
  EXPECT_EQ(std::memcmp(got.data<float>(), expected.data<float>(), 480 * sizeof(float)), 0);
}

// A run that was forced to resume with other data returns to a checkpoint of the old data.
TEST(Divergence, RolledBackTheRunKeepsItsData) {
  const binade::testing::TemporaryDirectory directory;
  const data::test::FakeDataset fewer(kSamples - kBatch);
  data::Loader loader(fewer, {.batch = kBatch, .workers = 0, .device = kernels::test_device()});
  NetRun first;
  first.fit({.epochs = 1, .run = directory / "run"});
  const auto resume = [&](int64_t epochs, int64_t bad_call, bool force) {
    NetRun run;
    auto calls = std::make_shared<int64_t>(0);
    const TrainingStep step = [calls, bad_call](nn::Module& net, const data::Batch& batch) {
      Tensor loss = classification_step(net, batch).loss;
      return ++*calls == bad_call ? loss / 0.0 : loss;
    };
    Trainer trainer({.model = *run.model, .optimizer = *run.sgd}, {.epochs = epochs,
                                                                   .run = directory / "run",
                                                                   .resume = true,
                                                                   .force = force,
                                                                   .progress = false,
                                                                   .step = step,
                                                                   .on_nan = OnNan::roll_back});
    trainer.fit(loader);
    return trainer.rollbacks();
  };
  test::Warnings warnings;
  EXPECT_EQ(resume(2, 2, true), 1);
  EXPECT_NE(warnings.all.find("20 samples instead of 24"), std::string::npos) << warnings.all;
  EXPECT_EQ(resume(3, -1, false), 1) << "it is the run's data now";
}

// With a loss scaler an overflow lowers the scale. Weights that are not finite are rolled back, in
// bf16 as in fp32.
TEST(Divergence, RolledBackInLowPrecision) {
  for (const bool scaled : {true, false}) {
    const binade::testing::TemporaryDirectory directory;
    NetRun run;
    run.model.emplace();
    run.model->to(kernels::test_device(), Precision::mixed(scaled ? DType::f16 : DType::bf16));
    run.sgd.emplace(run.model->parameters(), optim::SGDOptions{.lr = 0.01});
    optim::LossScaler scaler({.init_scale = 64, .growth_interval = 4});
    auto calls = std::make_shared<int64_t>(0);
    const TrainingStep step = [&run, calls](nn::Module& net, const data::Batch& batch) {
      const NoGradGuard guard;
      if (++*calls == kBatches + 2) {
        for (const auto& [name, tensor] : run.sgd->state_tensors()) {
          Tensor(tensor).fill_(NAN);
        }
        for (const Parameter& parameter : run.model->parameters()) {
          parameter.value.detach().fill_(NAN);
        }
      }
      const GradGuard record;
      return classification_step(net, batch).loss;
    };
    Trainer trainer(
        {.model = *run.model, .optimizer = *run.sgd, .scaler = scaled ? &scaler : nullptr},
        {.epochs = 2,
         .run = directory / "run",
         .progress = false,
         .step = step,
         .on_nan = OnNan::roll_back});
    test::Warnings warnings;
    trainer.fit(run.loader);
    EXPECT_EQ(trainer.rollbacks(), 1) << scaled << warnings.all;
    EXPECT_EQ(trainer.steps(), 2 * kBatches);
    EXPECT_TRUE(first_bad_tensor(*run.model).empty());
    EXPECT_EQ(run.sgd->lr(), 0.005);
    if (scaled) {
      EXPECT_GE(scaler.scale(), 64) << "the scale of the checkpoint, not that of the bad steps";
    }
  }
}

// Covers every dtype and layout, with a bad element at any position.
TEST(Divergence, OneBadElementIsFound) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const Tensor all = zeros({3, 5, 7, 9}).to(dtype).to(kernels::test_device());
    const Tensor views[] = {all, all.channels_last(), all.transpose(0, 2), slice(all, 3, 1, 4),
                            slice(all, 0, 1, 1)};
    for (const Tensor& x : views) {
      EXPECT_TRUE(is_finite(x)) << text(dtype, x.sizes());
      for (const double bad : std::initializer_list<double>{NAN, INFINITY, -INFINITY}) {
        for (const bool last : {false, true}) {
          if (x.numel() == 0) {
            continue;
          }
          Tensor one = x;
          for (int d = 0; d < 4; ++d) {
            const int64_t at = last ? one.size(d) - 1 : 0;
            one = slice(one, d, at, at + 1);
          }
          one.fill_(bad);
          EXPECT_FALSE(is_finite(x)) << text(dtype, x.sizes(), bad, last);
          one.fill_(0);
        }
      }
    }
  }
  EXPECT_TRUE(is_finite(Tensor()));
  EXPECT_TRUE(is_finite(full({2}, 7, DType::i64)));
}

TEST(Divergence, RollingBackNeedsARunDirectory) {
  NetRun run;
  for (const TrainerOptions& options :
       {TrainerOptions{.on_nan = OnNan::roll_back},
        TrainerOptions{.on_nan = OnNan::roll_back, .roll_back = {.factor = 1}}}) {
    EXPECT_THROW(Trainer({.model = *run.model, .optimizer = *run.sgd}, options), Error);
  }
}

}  // namespace
}  // namespace binade::train::divergence_test
