// Tests checkpoints written by a thread: the same bytes as without it, and errors that reach the
// training.
#include <binade/optim/adamw.h>
#include <binade/train/background_saves_internal.h>
#include <binade/train/model_file.h>
#include <tests/support/temporary_directory.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "tests/support/child_process.h"
#include "tests/train/checkpoint_samples.h"
#include "tests/train/nan_runs.h"
#include "tests/train/scripted_run.h"

namespace binade::train::async_save_test {
namespace {

// Wide enough that writing takes longer than a step.
class Wide : public nn::Module {
 public:
  Wide() {
    register_module("a", a);
    register_module("b", b);
  }
  Tensor forward(const Tensor& x) override { return b(relu(a(flatten(x, 1)))); }
  nn::Linear a{{.in = 48, .out = 4000}}, b{{.in = 4000, .out = 10}};
};

struct AsyncRun {
  std::string train(const std::string& path, TrainerOptions options) {
    manual_seed(7);
    Wide model;
    model.to(kernels::test_device(), Precision::full());
    optim::AdamW adam(model.parameters(), {.lr = 1e-3});
    const data::test::FakeDataset pictures(kSamples);
    data::Loader loader(
        pictures, {.batch = kBatch, .workers = 0, .seed = 3, .device = kernels::test_device()});
    options.run = path;
    options.progress = false;
    std::string error;
    try {
      Trainer trainer({.model = model, .optimizer = adam}, options);
      trainer.fit(loader, &loader);
      steps = trainer.steps();
    } catch (const Error& caught) {
      error = caught.what();
    }
    hash = state_hash(model.state()) + state_hash(adam.state_tensors());
    return error;
  }
  int64_t steps = 0;
  std::string hash;
};

std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(AsyncSave, WritesTheBytesOfASaveThatWaits) {
  const binade::testing::TemporaryDirectory directory;
  AsyncRun run;
  for (const bool async : {false, true}) {
    EXPECT_EQ(run.train(directory / (async ? "async" : "sync"),
                        {.epochs = 2, .checkpoint_every = 1, .async_save = async}),
              "");
  }
  const std::string sync = directory / "sync/checkpoint", async = directory / "async/checkpoint";
  ASSERT_EQ(names_in(sync), names_in(async));
  ASSERT_EQ(names_in(sync).size(), 3u) << "best and the two newest";
  for (const std::string& name : names_in(sync)) {
    for (const char* file : {"model.safetensors", "optimizer.safetensors", "manifest.json"}) {
      const std::string expected = file_bytes(sync + "/" + name + "/" + file);
      EXPECT_FALSE(expected.empty());
      EXPECT_TRUE(expected == file_bytes(async + "/" + name + "/" + file)) << name << "/" << file;
    }
  }
}

TEST(AsyncSave, AResumedRunIsTheSame) {
  const binade::testing::TemporaryDirectory directory;
  AsyncRun whole, parts;
  EXPECT_EQ(whole.train(directory / "whole", {.epochs = 3, .async_save = true}), "");
  EXPECT_EQ(parts.train(directory / "parts", {.epochs = 1, .async_save = true}), "");
  EXPECT_EQ(parts.train(directory / "parts", {.epochs = 3, .resume = true, .async_save = true}),
            "");
  EXPECT_EQ(parts.steps, whole.steps);
  EXPECT_EQ(parts.hash, whole.hash);
}

// The folder of checkpoints disappears midway: the next save, or the end of the run, reports it.
TEST(AsyncSave, AnErrorOfASaveReachesTheTraining) {
  for (const int64_t at : {int64_t(2), kBatches}) {
    const binade::testing::TemporaryDirectory directory;
    const std::string path = directory / "run";
    auto calls = std::make_shared<int64_t>(0);
    const TrainingStep step = [=](nn::Module& model, const data::Batch& batch) {
      if (model.is_training() && ++*calls == at) {
        std::filesystem::rename(path + "/checkpoint", path + "/moved");
        std::ofstream(path + "/checkpoint") << "in the way";
      }
      return classification_step(model, batch).loss;
    };
    AsyncRun run;
    const std::string error =
        run.train(path, {.epochs = 1, .checkpoint_every = 1, .async_save = true, .step = step});
    EXPECT_NE(error.find("checkpoint"), std::string::npos) << "'" << error << "'";
  }
}

TEST(AsyncSave, AForkedChildLeavesTheThreadToTheParent) {
  auto saves = std::make_unique<BackgroundSaves>();
  std::atomic<bool> goes_on = false;
  saves->add([&] {
    while (!goes_on) {
      ::usleep(100);
    }
  });
  EXPECT_TRUE(binade::testing::run_child([&] {
    ::alarm(20);
    saves.reset();
    ::_exit(0);
  }));
  goes_on = true;
  saves->wait();
}

// An error that ends a run does not interrupt the save before it.
TEST(AsyncSave, AFailedRunLeavesWholeCheckpoints) {
  const binade::testing::TemporaryDirectory directory;
  AsyncRun run;
  auto calls = std::make_shared<int64_t>(0);
  const TrainingStep step = [=](nn::Module& model, const data::Batch& batch) {
    check(++*calls < 4, "the step fails");
    return classification_step(model, batch).loss;
  };
  EXPECT_EQ(run.train(directory / "run", {.epochs = 1,
                                          .checkpoint_every = 1,
                                          .async_save = true,
                                          .step = step,
                                          .sanity_batches = 0}),
            "the step fails");
  CheckpointStore store(directory / "run");
  const auto newest = store.newest_verified();
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->step, 3);
  EXPECT_EQ(names_in(store.path()), (Names{"step-00000002", "step-00000003"}));
}

}  // namespace
}  // namespace binade::train::async_save_test
