// A loss or weights that are not finite: an error that names the step and the first bad tensor, or
// what TrainerOptions::on_nan says: the step is skipped, the run returns to a checkpoint, goes on.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/activation.h>
#include <binade/nn/linear.h>
#include <binade/nn/norm.h>
#include <binade/optim/adamw.h>
#include <binade/optim/sgd.h>
#include <binade/train/model_file.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>
#include <tests/support/temporary_directory.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/data/fake_dataset.h"
#include "tests/train/checkpoint_samples.h"
#include "tests/train/scripted_run.h"

namespace binade::train {
namespace {

constexpr int64_t kSamples = 24, kBatch = 4, kBatches = kSamples / kBatch;

class Net : public nn::Module {
 public:
  Net() {
    register_module("fc", fc);
    register_module("dropout", dropout);
  }
  Tensor forward(const Tensor& x) override { return dropout(fc(flatten(x, 1))); }
  nn::Linear fc{{.in = 48, .out = 10}};
  nn::Dropout dropout{{.p = 0.25}};
};

struct NetRun {
  explicit NetRun(double lr = 0.01) : lr(lr) {
    manual_seed(3);
    model.emplace();
    model->to(kernels::test_device(), Precision::full());
    sgd.emplace(model->parameters(), optim::SGDOptions{.lr = lr});
  }
  void fit(TrainerOptions options, data::Loader* validation = nullptr) {
    options.progress = false;
    Trainer trainer({.model = *model, .optimizer = *sgd}, std::move(options));
    try {
      trainer.fit(loader, validation);
    } catch (const Error& caught) {
      error = caught.what();
    }
    steps = trainer.steps();
  }
  void expect_error(const std::vector<std::string>& parts) const {
    EXPECT_FALSE(error.empty()) << "no error";
    for (const std::string& part : parts) {
      EXPECT_NE(error.find(part), std::string::npos) << "'" << part << "' is not in " << error;
    }
  }
  bool is_finite() const {
    return std::isfinite(amax(abs(model->fc.weight.detach())).to(Device{}).item());
  }

  double lr;
  data::test::FakeDataset pictures{kSamples};
  data::Loader loader{pictures,
                      {.batch = kBatch, .workers = 0, .seed = 3, .device = kernels::test_device()}};
  std::optional<Net> model;
  std::optional<optim::SGD> sgd;
  std::string error;
  int64_t steps = 0;
};

bool on_cpu() { return kernels::test_device().is_cpu(); }

// The log of a negative number, in the batch with sample 9.
TrainingStep bad_in_one_batch(int64_t* bad_step, double scale = 1) {
  auto calls = std::make_shared<int64_t>(0);
  return [=](nn::Module& model, const data::Batch& batch) {
    const int64_t call = (*calls)++;
    Tensor loss = classification_step(model, batch);
    const auto& ids = batch.indices;
    if (std::find(ids.begin(), ids.end(), 9) == ids.end()) {
      return loss;
    }
    *bad_step = *bad_step < 0 ? call : *bad_step;
    return loss * log(sum(square(loss)) * -scale);
  };
}

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

// The weights grow until something overflows.
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

// The last gradient is bad though its loss is finite: no later loss tells of it.
TEST(NanLoss, BadWeightsAreFoundAtTheEndOfTheEpochAndNotSaved) {
  const binade::testing::TemporaryDirectory directory;
  NetRun run;
  auto calls = std::make_shared<int64_t>(0);
  const TrainingStep step = [calls](nn::Module& model, const data::Batch& batch) {
    Tensor loss = classification_step(model, batch);
    // sqrt(0): the value is 0, the slope infinite, and infinity times 0 is NaN.
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

// As the same loop by hand, without the bad step.
TEST(NanLoss, SkippedTheStepIsNotTaken) {
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
        const Tensor loss = step(*by_hand.model, batch);
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

// Statistics of a batch that is skipped must not stay NaN.
TEST(NanLoss, SkippedABatchLeavesNoBadStatistics) {
  struct Normed : Net {
    Normed() { register_module("norm", norm); }
    Tensor forward(const Tensor& x) override { return Net::forward(norm(x)); }
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
    return classification_step(net, batch);
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

// What no later step can mend ends the run whatever the policy.
TEST(NanLoss, SkippingAllIsAnError) {
  for (const OnNan on_nan : {OnNan::skip, OnNan::roll_back}) {
    const binade::testing::TemporaryDirectory directory;
    NetRun run;
    const TrainingStep step = [](nn::Module& model, const data::Batch& batch) {
      return classification_step(model, batch) / 0.0;
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

TEST(NanLoss, AFixedScaleThatSkipsAllIsAnError) {
  NetRun run;
  optim::LossScaler scaler = optim::LossScaler::fixed(0x1p120);
  const TrainingStep step = [](nn::Module& model, const data::Batch& batch) {
    return classification_step(model, batch) * 0x1p20;
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

// With a scaler NaN weights make every gradient NaN: the steps are skipped and nothing tells why.
TEST(NanLoss, BadWeightsUnderALossScalerAreAnError) {
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

// A loss that is bad once, in the second epoch.
struct RolledBack : NetRun {
  explicit RolledBack(const std::string& path, bool scheduled) : NetRun(0.5), path(path) {
    if (scheduled) {
      schedule.emplace(*sgd, optim::StepLROptions{.step_size = 2 * kBatches, .gamma = 0.25});
    }
  }
  void train(int64_t epochs, bool resume, int64_t bad_call) {
    auto calls = std::make_shared<int64_t>(0);
    const TrainingStep step = [calls, bad_call](nn::Module& net, const data::Batch& batch) {
      Tensor loss = classification_step(net, batch);
      return ++*calls == bad_call ? loss / 0.0 : loss;
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

TEST(NanLoss, RolledBackTheRunGoesOnWithASmallerRate) {
  for (const bool scheduled : {false, true}) {
    const binade::testing::TemporaryDirectory directory;
    RolledBack run(directory / "run", scheduled);
    run.train(2, false, kBatches + 3);
    EXPECT_EQ(run.steps, 2 * kBatches);
    EXPECT_EQ(run.rollbacks, 1);
    EXPECT_NE(run.said.find("return number 1 of at most 2"), std::string::npos) << run.said;
    EXPECT_NE(run.said.find(text("to step ", kBatches)), std::string::npos) << run.said;
    EXPECT_TRUE(run.is_finite());
    EXPECT_EQ(run.sgd->lr(), scheduled ? 0.5 / 8 / 4 : 0.5 / 8);  // the schedule's next one
    std::ifstream metrics(directory / "run/metrics.jsonl");
    const std::string lines{std::istreambuf_iterator<char>(metrics), {}};
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);

    RolledBack resumed(directory / "run", scheduled);
    resumed.train(3, true, -1);
    EXPECT_EQ(resumed.rollbacks, 1);
    EXPECT_EQ(resumed.steps, 3 * kBatches);
    EXPECT_EQ(resumed.sgd->lr(), scheduled ? 0.5 / 8 / 4 : 0.5 / 8);
  }
}

// The same bits as a run that begins there with that rate.
TEST(NanLoss, RolledBackNothingOfTheBadStepsStays) {
  const binade::testing::TemporaryDirectory directory;
  RolledBack run(directory / "run", false);
  run.train(2, false, kBatches + 4);
  const Tensor got = run.model->fc.weight.detach().to(Device{});
  RolledBack again(directory / "again", false);
  again.train(1, false, -1);
  again.sgd->set_lr(0.5 / 8);
  again.loader.epoch(1);
  data::Batch batch;
  while (again.loader.next(batch)) {
    classification_step(*again.model, batch).backward();
    (void)again.sgd->step();
    again.sgd->zero_grad();
  }
  const Tensor expected = again.model->fc.weight.detach().to(Device{});
  EXPECT_EQ(std::memcmp(got.data<float>(), expected.data<float>(), 480 * sizeof(float)), 0);
}

TEST(NanLoss, RollingBackNeedsARunDirectory) {
  NetRun run;
  for (const TrainerOptions& options :
       {TrainerOptions{.on_nan = OnNan::roll_back},
        TrainerOptions{.on_nan = OnNan::roll_back, .roll_back = {.factor = 1}}}) {
    EXPECT_THROW(Trainer({.model = *run.model, .optimizer = *run.sgd}, options), Error);
  }
}

TEST(NanLoss, BadImagesAreNamed) {
  NetRun run;
  const TrainingStep step = [](nn::Module& model, const data::Batch& batch) {
    const NoGradGuard guard;
    slice(batch.images, 0, 1, 2).fill_(INFINITY);
    const GradGuard record;
    return classification_step(model, batch);
  };
  run.fit({.epochs = 1, .step = step});
  run.expect_error({"in step 0", on_cpu() ? "the images of the batch are not finite" : "fc."});
}

TEST(NanLoss, OfTheValidationEndsTheRunToo) {
  const TrainingStep step = [](nn::Module& model, const data::Batch& batch) {
    Tensor loss = classification_step(model, batch);
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

// Many steps with windows of micro-batches: the error names the right step, on a device too.
TEST(NanLoss, TheStepIsCountedOverWindows) {
  NetRun run;
  auto calls = std::make_shared<int64_t>(0);
  const TrainingStep step = [calls](nn::Module& model, const data::Batch& batch) {
    Tensor loss = classification_step(model, batch);
    return ++*calls == 5 + kBatches ? loss / 0.0 : loss;  // the third window of the second epoch
  };
  run.fit({.epochs = 3, .accumulate = 2, .step = step});
  run.expect_error({"got a loss of inf in step 5"});
}

// A replayed step gives the same as one without a graph, also with more losses than the buffer
// holds.
TEST(NanLoss, TheMeanLossIsThatOfThePlainSum) {
  NetRun run;
  const auto pictures = data::test::FakeDataset(300);
  data::Loader loader(pictures, {.batch = 1, .workers = 0, .device = kernels::test_device()});
  double sum = 0;
  const TrainingStep step = [&sum](nn::Module& model, const data::Batch& batch) {
    Tensor loss = classification_step(model, batch);
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
        return classification_step(net, batch);
      }
      const bool bad = ++call == 3;
      return sum(model.weight) * (!bad ? 1 : in_moment ? 1e30 : std::nan(""));  // v: 1e60
    };
    Trainer trainer({.model = model, .optimizer = adamw}, {.epochs = 4,
                                                           .run = run,
                                                           .overwrite = true,
                                                           .progress = false,
                                                           .step = step,
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

}  // namespace
}  // namespace binade::train
