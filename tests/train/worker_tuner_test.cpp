// Tests the choice of loader threads during a run. Samples wait so much longer than steps take, and
// the waits of a trial differ so much from those before, that a busy machine does not matter.
#include <binade/binade.h>
#include <binade/kernels/base/control_group.h>
#include <binade/train/finders/worker_tuner.h>
#include <binade/train/profiler.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "tests/data/fake_dataset.h"
#include "tests/support/error_of.h"

namespace binade::train::worker_tuner_test {
namespace {

struct PixelLinear : nn::Module {
  PixelLinear() { register_module("layer", layer); }
  Tensor forward(const Tensor& x) override { return layer(flatten(x, 1)); }
  nn::Linear layer{{.in = 48, .out = 10}};
};

struct TunedRun {
  std::vector<std::string> lines;
  int threads = 0;
  std::vector<float> weights;
};

struct Waits {
  int first = 0, later = 0;  // milliseconds of a sample: in the first two epochs, and after them
};

// Trains for some epochs.
TunedRun tuned_run(int64_t epochs, const Waits& waits, int threads, bool tuned = true) {
  manual_seed(3);
  data::test::FakeDataset data(120);
  std::atomic<int> wait{waits.first};
  data.before_get = [&](int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(wait)); };
  const auto pool = std::make_shared<data::WorkerPool>(threads);
  data::Loader loader(data, {.batch = 4, .pool = pool, .seed = 3, .cache_bytes = 0});
  PixelLinear net;
  optim::SGD sgd(net.parameters(), {.lr = 0.01});
  TunedRun run;
  const WorkerTuner tuner(pool, [&run](const std::string& line) { run.lines.push_back(line); });
  TrainerOptions options{.epochs = epochs, .progress = false};
  if (tuned) {
    options.callbacks.push_back(tuner.callbacks());
  }
  options.callbacks.push_back({.epoch_end = [&](const RunView& view) {
    wait = view.epoch == 1 ? waits.later : wait.load();
  }});
  Trainer trainer({.model = net, .optimizer = sgd}, options);
  trainer.fit(loader);
  run.threads = pool->threads();
  run.weights = net.layer.weight.to_vector<float>();
  return run;
}

TEST(WorkerTuner, AddsThreadsThatTheAdviserAskedForAndThatHelped) {
  if (kernels::usable_cores().count < 2) {
    GTEST_SKIP() << "one core has a worker already";
  }
  const TunedRun run = tuned_run(4, {.first = 10, .later = 1}, 1);
  EXPECT_GT(run.threads, 1);
  ASSERT_EQ(run.lines.size(), 1U);
  EXPECT_EQ(run.lines[0].find("workers 1 -> "), 0U) << run.lines[0];
  EXPECT_TRUE(run.lines[0].ends_with("; kept")) << run.lines[0];
  EXPECT_EQ(run.weights, tuned_run(4, {}, 1, false).weights);
}

TEST(WorkerTuner, GoesBackIfTheGainIsNotThere) {
  if (kernels::usable_cores().count < 2) {
    GTEST_SKIP() << "one core has a worker already";
  }
  // In the third epoch, which has more threads, every sample is slow.
  data::test::FakeDataset data(120);
  std::atomic<int> slow{5};
  data.before_get = [&](int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(slow)); };
  const auto pool = std::make_shared<data::WorkerPool>(1);
  data::Loader loader(data, {.batch = 4, .pool = pool, .seed = 3, .cache_bytes = 0});
  PixelLinear net;
  optim::SGD sgd(net.parameters(), {.lr = 0.01});
  std::vector<std::string> lines;
  const WorkerTuner tuner(pool, [&](const std::string& line) { lines.push_back(line); });
  std::vector<int> threads;
  const Callbacks slower{.epoch_end = [&](const RunView& view) {
    threads.push_back(pool->threads());
    slow = view.epoch == 1 ? 30 : 1;
  }};
  Trainer trainer({.model = net, .optimizer = sgd},
                  {.epochs = 3, .progress = false, .callbacks = {tuner.callbacks(), slower}});
  trainer.fit(loader);
  ASSERT_EQ(threads.size(), 3U);
  EXPECT_EQ(threads[0], 1);
  EXPECT_GT(threads[1], 1);  // chosen for the third epoch
  EXPECT_EQ(threads[2], 1);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].ends_with("; back to 1")) << lines[0];
}

TEST(WorkerTuner, LeavesAloneWhatNeedsNoChange) {
  const int cores = kernels::usable_cores().count;
  EXPECT_TRUE(tuned_run(4, {1, 1}, cores).lines.empty());
  EXPECT_TRUE(tuned_run(2, {1, 1}, 1).lines.empty());
  Profiler profiler({.wait = 1'000'000});
  EXPECT_TRUE(tuned_run(4, {1, 1}, 1).lines.empty());
  EXPECT_NE(error_of([] { WorkerTuner none(nullptr); }).find("got no pool"), std::string::npos);
}

TEST(WorkerPool, IsResizedFromTheNextEpochOn) {
  data::test::FakeDataset data(40);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  data.before_get = [&](int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  };
  const auto pool = std::make_shared<data::WorkerPool>(1);
  data::Loader loader(data, {.batch = 2, .pool = pool, .prefetch = 1, .cache_bytes = 0});
  int64_t epoch = 0;
  std::vector<int64_t> order[3];
  for (const int threads : {1, 6, 2}) {
    pool->resize(threads);
    {
      const std::lock_guard lock(mutex);
      seen.clear();
    }
    for (const data::Batch& batch : loader.epoch(0)) {
      order[epoch].insert(order[epoch].end(), batch.indices.begin(), batch.indices.end());
    }
    ++epoch;
    const std::lock_guard lock(mutex);
    EXPECT_LE(seen.size(), static_cast<size_t>(threads));
    EXPECT_EQ(loader.stats().workers, threads);
    if (threads == 6) {  // the ring has room for all of them
      EXPECT_GT(seen.size(), 2U);
    }
  }
  EXPECT_EQ(order[1], order[0]);
  EXPECT_EQ(order[2], order[0]);
  EXPECT_NE(error_of([&] { pool->resize(0); }).find("got 0 threads"), std::string::npos);
}

TEST(WorkerPool, GivesWayToATrialOfTheEnvironment) {
  const auto pool = std::make_shared<data::WorkerPool>(1);
  ::setenv("BINADE_LOADER_WORKERS", "3", 1);
  data::test::FakeDataset data(8);
  data::Loader loader(data, {.batch = 2, .pool = pool});
  ::unsetenv("BINADE_LOADER_WORKERS");
  loader.epoch(0);
  data::Batch batch;
  loader.next(batch);
  EXPECT_EQ(loader.stats().workers, 3);
}

}  // namespace
}  // namespace binade::train::worker_tuner_test
