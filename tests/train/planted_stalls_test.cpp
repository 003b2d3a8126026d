// Plants bottlenecks in real steps: the adviser must name each first. The planted waits are so much
// longer than the steps that a busy machine does not matter.
#include <binade/binade.h>
#include <binade/dist/job/threads.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/kernels/base/control_group.h>
#include <binade/train/profile/stalls.h>
#include <binade/train/profiler.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "tests/data/fake_dataset.h"

namespace binade::train::planted_stalls_test {
namespace {

constexpr int64_t kSteps = 8;

void wait_milliseconds(int count) { std::this_thread::sleep_for(std::chrono::milliseconds(count)); }

struct PixelNet : nn::Module {
  PixelNet() {
    register_module("first", first);
    register_module("last", last);
  }
  Tensor forward(const Tensor& x) override { return last(relu(first(flatten(x, 1)))); }
  nn::Linear first{{.in = 48, .out = 16}};
  nn::Linear last{{.in = 16, .out = 10}};
};

// Records steps of `body`.
Trace record_steps(const std::function<void()>& body, Activities activities = kEveryActivity) {
  Profiler profiler({.wait = 1,
                     .warmup = 1,
                     .active = kSteps,
                     .activities = activities,
                     .measure_roofline = false});
  for (int64_t i = 0; i < kSteps + 2; ++i) {
    body();
    profiler.step();
  }
  profiler.finish();
  return profiler.trace();
}

Advice first_advice(std::span<const Trace> ranks) {
  const StallReport report = find_stalls(ranks);
  return report.advice.empty() ? Advice{.cause = "none", .sentence = to_text(report)}
                               : report.advice[0];
}

// Each sample takes 5 ms.
Advice advice_with_slow_samples(int workers) {
  data::test::FakeDataset data(400);
  data.before_get = [](int64_t) { wait_milliseconds(5); };
  data::Loader loader(data, {.batch = 4, .workers = workers, .seed = 3});
  PixelNet net;
  optim::SGD sgd(net.parameters(), {.lr = 0.01});
  loader.epoch(0);
  const Trace trace = record_steps([&] {
    data::Batch batch;
    check(loader.next(batch), "the planted run has too few samples");
    nn::cross_entropy(net(batch.images), batch.labels).backward();
    static_cast<void>(sgd.step());
  });
  return first_advice({&trace, 1});
}

const int kCores = kernels::usable_cores().count;

TEST(PlantedStalls, SlowDecodeWhereEveryCoreHasAWorker) {
  const Advice advice = advice_with_slow_samples(kCores);
  EXPECT_EQ(advice.cause, "decode") << advice.sentence;
  EXPECT_EQ(advice.where, "data::Dataset::get");
  EXPECT_GT(advice.gain, 0.3);
}

TEST(PlantedStalls, OneWorkerOrNone) {
  if (kCores < 2) {
    GTEST_SKIP() << "skipped: one core";
  }
  for (const int workers : {0, 1}) {
    const Advice advice = advice_with_slow_samples(workers);
    EXPECT_EQ(advice.cause, "workers") << advice.sentence;
    EXPECT_EQ(advice.where, "LoaderOptions::workers");
    EXPECT_GT(advice.value, workers);
    EXPECT_GT(advice.gain, 0.05);
  }
}

TEST(PlantedStalls, ATinyBatch) {
  nn::MLP net({.in = 8, .hidden = {8, 8, 8, 8, 8, 8}, .classes = 4});
  optim::AdamW adam(net.parameters(), {.lr = 0.01});
  const Tensor x = randn({1, 8}), labels = full({1}, 3, DType::i64);
  // The steps take about 20 us, so an interruption on a busy machine dominates one: try again.
  Advice advice;
  constexpr int kTries = 50;
  for (int i = 0; i < kTries && advice.cause != "batch"; ++i) {
    const auto step = [&] {
      nn::cross_entropy(net(x), labels).backward();
      static_cast<void>(adam.step());
    };
    // The call stack of each op is left out, because it takes as long as such a small op.
    const Trace trace =
        record_steps(step, kEveryActivity & ~static_cast<Activities>(Activity::source_lines));
    advice = first_advice({&trace, 1});
  }
  EXPECT_EQ(advice.cause, "batch") << advice.sentence;
  EXPECT_EQ(advice.where, "LoaderOptions::batch");
}

TEST(PlantedStalls, ALossThatIsKeptWithItsGraph) {
  PixelNet net;
  optim::SGD sgd(net.parameters(), {.lr = 0.01});
  const Tensor x = randn({64, 48}), labels = full({64}, 3, DType::i64);
  std::vector<Tensor> losses;
  const Trace trace = record_steps([&] {
    const PhaseSpan phase("forward");
    losses.push_back(nn::cross_entropy(net(x), labels));
    wait_milliseconds(2);  // the step's own wait comes second
  });
  const Advice advice = first_advice({&trace, 1});
  EXPECT_EQ(advice.cause, "leak") << advice.sentence;
  EXPECT_NE(advice.sentence.find("graph nodes"), std::string::npos) << advice.sentence;
}

// Both ranks run in this process, which has one profiler, so the job runs once for each of them.
TEST(PlantedStalls, ARankThatWorksLonger) {
  std::vector<Trace> ranks(2);
  for (int profiled = 0; profiled < 2; ++profiled) {
    dist::run_threads(2, [&](dist::Communicator& world) {
      PixelNet net;
      dist::DistributedDataParallel ddp(world, net.parameters());
      optim::SGD sgd(net.parameters(), {.lr = 0.01});
      const Tensor x = full({4, 48}, 0.5), labels = full({4}, 3, DType::i64);
      const auto step = [&] {
        const Tensor loss = nn::cross_entropy(net(x), labels);
        if (world.rank() == 1) {
          const PhaseSpan phase("forward");
          wait_milliseconds(20);
        }
        loss.backward();
        static_cast<void>(sgd.step());
      };
      if (world.rank() == profiled) {
        ranks[static_cast<size_t>(profiled)] = record_steps(step);
        ranks[static_cast<size_t>(profiled)].rank = profiled;
      } else {
        for (int64_t i = 0; i < kSteps + 2; ++i) {
          step();
        }
      }
    });
  }
  const Advice advice = first_advice(ranks);
  EXPECT_EQ(advice.cause, "ranks") << advice.sentence;
  EXPECT_EQ(advice.where, "rank 1");
}

}  // namespace
}  // namespace binade::train::planted_stalls_test
