// Tests a loss or weights that are not finite: an error names the step and the first bad tensor, or
// the run continues regardless. divergence_test.cpp tests the policies that repair it.
#include <binade/optim/adamw.h>
#include <binade/train/model_file.h>
#include <tests/support/temporary_directory.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/train/checkpoint_samples.h"
#include "tests/train/nan_runs.h"
#include "tests/train/scripted_run.h"

namespace binade::train::nan_loss_test {
namespace {

TEST(NanLoss, EndsTheRunWithStepAndTensor) {
  NetRun run;
  int64_t bad_step = -1;
  run.fit({.epochs = 3, .step = bad_in_one_batch(&bad_step)});
  run.expect_error({"got a loss of", "nan", text("in step ", bad_step), "TrainerOptions::on_nan"});
  if (on_cpu()) {
    run.expect_error({"samples ", "9", "the result of log"});
    EXPECT_EQ(run.steps, bad_step);
    EXPECT_TRUE(run.is_finite()) << "the bad batch must not reach the weights";
  } else {
    run.expect_error({"fc.weight is not finite"});
    EXPECT_EQ(run.steps, kBatches) << "asked at the end of the epoch";
  }
}

TEST(NanLoss, NamesTheModuleWhoseOpMadeIt) {
  class Deep : public nn::Module {
   public:
    Deep() { register_module("head", head); }
    Tensor forward(const Tensor& x) override { return head(x); }
    struct Head : nn::Module {
      Head() { register_module("fc", fc); }
      Tensor forward(const Tensor& x) override { return sqrt(fc(flatten(x, 1)) * 0.0 - 1.0); }
      nn::Linear fc{{.in = 48, .out = 10}};
    } head;
  };
  Deep deep;
  optim::SGD sgd(deep.parameters(), {.lr = 0.1});
  const data::test::FakeDataset pictures(8);
  data::Loader loader(pictures, {.batch = 4, .workers = 0});
  Trainer trainer({.model = deep, .optimizer = sgd}, {.epochs = 1, .progress = false});
  try {
    trainer.fit(loader);
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string what = error.what();
    for (const char* part : {"in step 0", "the result of sqrt", "(in module head)"}) {
      EXPECT_NE(what.find(part), std::string::npos) << what;
    }
  }
}

// The weights grow until they overflow.
TEST(NanLoss, DivergenceNamesTheFirstOverflow) {
  NetRun run(3e38);
  run.fit({.epochs = 40});
  run.expect_error({"got a loss of", "lower the learning rate",
                    on_cpu() ? "the result of linear" : "fc.weight is not finite"});
  EXPECT_LT(run.steps, 40 * kBatches);
}

TEST(NanLoss, ABadWeightIsNamed) {
  NetRun run;
  {
    const NoGradGuard guard;
    slice(run.model->fc.bias, 0, 3, 4).fill_(NAN);
  }
  run.fit({.epochs = 1});
  run.expect_error({"got a loss of nan in step 0", on_cpu() ? "fc.bias is not finite" : "fc."});
}

// The last gradient is bad although its loss is finite, so no later loss shows it.
TEST(NanLoss, BadWeightsAreFoundAtTheEndOfTheEpochAndNotSaved) {
  const binade::testing::TemporaryDirectory directory;
  NetRun run;
  auto calls = std::make_shared<int64_t>(0);
  const TrainingStep step = [calls](nn::Module& model, const data::Batch& batch) {
    Tensor loss = classification_step(model, batch).loss;
    // At sqrt(0) the value is 0 and the slope infinite; infinity times 0 is NaN.
    return ++*calls == 2 * kBatches ? loss + sqrt(loss * 0.0) * 0.0 : loss;
  };
  run.fit({.epochs = 2, .run = directory.path() + "/run", .step = step});
  run.expect_error({text("after step ", 2 * kBatches - 1), "fc.weight is not finite"});
  EXPECT_TRUE(std::filesystem::exists(directory.path() + "/run/checkpoint/step-00000006"));
  EXPECT_FALSE(std::filesystem::exists(directory.path() + "/run/checkpoint/step-00000012"));
}

TEST(NanLoss, IgnoredTheRunGoesOn) {
  NetRun run;
  int64_t bad_step = -1;
  run.fit({.epochs = 2, .step = bad_in_one_batch(&bad_step), .on_nan = OnNan::ignore});
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.steps, 2 * kBatches);
  EXPECT_FALSE(run.is_finite());
}

TEST(NanLoss, BadImagesAreNamed) {
  NetRun run;
  const TrainingStep step = [](nn::Module& model, const data::Batch& batch) {
    const NoGradGuard guard;
    slice(batch.images, 0, 1, 2).fill_(INFINITY);
    const GradGuard record;
    return classification_step(model, batch).loss;
  };
  run.fit({.epochs = 1, .step = step});
  run.expect_error({"in step 0", on_cpu() ? "the field images of the batch is not finite" : "fc."});
}

TEST(NanLoss, OfTheValidationEndsTheRunToo) {
  const TrainingStep step = [](nn::Module& model, const data::Batch& batch) {
    Tensor loss = classification_step(model, batch).loss;
    return model.is_training() ? loss : loss / 0.0;
  };
  for (const OnNan on_nan : {OnNan::error, OnNan::ignore}) {
    NetRun run;
    data::Loader validation(run.pictures,
                            {.batch = kBatch, .workers = 0, .device = kernels::test_device()});
    run.fit({.epochs = 2, .step = step, .on_nan = on_nan}, &validation);
    EXPECT_EQ(run.steps, on_nan == OnNan::error ? kBatches : 2 * kBatches);
    if (on_nan == OnNan::error) {
      run.expect_error({"got a loss of inf in the validation of epoch 0"});
    } else {
      EXPECT_EQ(run.error, "");
    }
  }
}

// With many windows of micro-batches, the error names the right step, on a device too.
TEST(NanLoss, TheStepIsCountedOverWindows) {
  NetRun run;
  auto calls = std::make_shared<int64_t>(0);
  const TrainingStep step = [calls](nn::Module& model, const data::Batch& batch) {
    Tensor loss = classification_step(model, batch).loss;
    return ++*calls == 5 + kBatches ? loss / 0.0 : loss;  // the third window of the second epoch
  };
  run.fit({.epochs = 3, .accumulate = 2, .step = step});
  run.expect_error({"got a loss of inf in step 5"});
}

// A replayed step gives the same mean as one without a graph, also with more losses than the buffer
// holds.
TEST(NanLoss, TheMeanLossIsThatOfThePlainSum) {
  NetRun run;
  const auto pictures = data::test::FakeDataset(300);
  data::Loader loader(pictures, {.batch = 1, .workers = 0, .device = kernels::test_device()});
  double sum = 0;
  const TrainingStep step = [&sum](nn::Module& model, const data::Batch& batch) {
    Tensor loss = classification_step(model, batch).loss;
    sum += loss.detach().to(Device{}).item();
    return loss;
  };
  const binade::testing::TemporaryDirectory directory;
  Trainer trainer({.model = *run.model, .optimizer = *run.sgd},
                  {.epochs = 1, .run = directory.path() + "/run", .progress = false, .step = step});
  trainer.fit(loader);
  std::ostringstream metrics;
  metrics << std::ifstream(directory.path() + "/run/metrics.jsonl").rdbuf();
  const size_t at = metrics.str().find("\"train_loss\":");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NEAR(std::stod(metrics.str().substr(at + 13)), sum / 300, 1e-12);
}

TEST(NanLoss, WhatIsNotFiniteIsNeverSaved) {
  const binade::testing::TemporaryDirectory directory;
  const std::string run = directory / "run";
  for (const bool in_moment : {false, true}) {
    test::ScriptedModel model({3, 2, 1, 0.5});
    optim::AdamW adamw(model.parameters(), {.lr = 1});
    const data::test::FakeDataset pictures(1);
    data::Loader loader(pictures, {.batch = 1, .workers = 0});
    int64_t call = 0;
    const TrainingStep step = [&](nn::Module& net, const data::Batch& batch) {
      if (!net.is_training()) {
        return classification_step(net, batch).loss;
      }
      const bool bad = ++call == 3;
      return sum(model.weight) * (!bad ? 1 : in_moment ? 1e30 : std::nan(""));  // v: 1e60
    };
    Trainer trainer({.model = model, .optimizer = adamw}, {.epochs = 4,
                                                           .run = run,
                                                           .overwrite = true,
                                                           .progress = false,
                                                           .step = step,
                                                           .sanity_batches = 0,
                                                           .on_nan = OnNan::ignore});
    test::Warnings warnings;
    trainer.fit(loader, &loader);
    EXPECT_EQ(trainer.steps(), 4);
    EXPECT_NE(
        warnings.all.find(in_moment ? "exp_avg_sq.weight is not finite" : "weight is not finite"),
        std::string::npos)
        << warnings.all;
    EXPECT_EQ(names_in(run + "/checkpoint"), (Names{"best", "step-00000001", "step-00000002"}));
    CheckpointStore store(run);
    EXPECT_EQ(store.best_verified()->step, 2);
    for (const char* name : {"best", "step-00000002"}) {
      for (const auto& [tensor, value] :
           load_tensors(store.path() + "/" + name + "/model.safetensors")) {
        EXPECT_TRUE(std::isfinite(amax(abs(value)).item())) << tensor;
      }
    }
  }
}

// The weights stay finite, but the second moment is infinite, so no later state could be saved.
TEST(NanLoss, AMomentThatOverflowsEndsTheRun) {
  for (const bool in_the_background : {false, true}) {
    const binade::testing::TemporaryDirectory directory;
    const std::string run = directory / "run";
    test::ScriptedModel model({3, 2, 1, 0.5});
    optim::AdamW adamw(model.parameters(), {.lr = 1});
    const data::test::FakeDataset pictures(1);
    data::Loader loader(pictures, {.batch = 1, .workers = 0});
    int64_t call = 0;
    const TrainingStep step = [&](nn::Module& net, const data::Batch& batch) {
      return net.is_training() ? sum(model.weight) * (++call == 3 ? 1e30 : 1)
                               : classification_step(net, batch).loss;
    };
    Trainer trainer({.model = model, .optimizer = adamw}, {.epochs = 4,
                                                           .run = run,
                                                           .async_save = in_the_background,
                                                           .progress = false,
                                                           .step = step,
                                                           .sanity_batches = 0});
    std::string error;
    try {
      trainer.fit(loader, &loader);
    } catch (const Diverged& caught) {
      error = caught.what();
    }
    EXPECT_NE(error.find("cannot be saved, exp_avg_sq.weight is not finite"), std::string::npos)
        << error;
    CheckpointStore store(run);
    EXPECT_EQ(store.newest_verified()->step, 2);
    EXPECT_EQ(store.best_verified()->step, 2);
  }
}

}  // namespace
}  // namespace binade::train::nan_loss_test
