// Long runs and many objects must not grow, wrap a counter, or leave threads and files behind (the
// tests S1, S3 and S5). BINADE_SOAK_STEPS sets the number of steps and objects; the ctest
// train_soak_long uses 200,000.
#include <binade/binade.h>
#include <binade/data/permutation.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tests/data/fake_dataset.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"

namespace binade::soak_test {
namespace {

int64_t steps() {
  const char* set = std::getenv("BINADE_SOAK_STEPS");
  return set != nullptr ? std::atoll(set) : 600;
}

int64_t entries(const char* folder) {
  using Iterator = std::filesystem::directory_iterator;
  return std::distance(Iterator(folder), Iterator());
}
int64_t open_files() { return entries("/proc/self/fd"); }
// A joined thread stays listed until the system removes it, so the least of several counts is used.
int64_t running_threads() {
  int64_t fewest = entries("/proc/self/task");
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fewest = std::min(fewest, entries("/proc/self/task"));
  }
  return fewest;
}

// Returns 0 under a sanitizer that keeps freed memory.
int64_t resident_bytes() {
  if (testing::kAddressSanitizer || testing::kThreadSanitizer) {
    return 0;
  }
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages >> pages;
  return pages * 4096;
}

// A tiny training run with evaluation, a saved model and a new loader every `period` steps.
class Soak {
 public:
  explicit Soak(const std::string& file) : file_(file) {
    manual_seed(1);
    model_.add<nn::Flatten>();
    model_.add<nn::Linear>({.in = 48, .out = 10});
    model_.to(Device(), Precision::mixed(DType::f16));
    adam_.emplace(model_.parameters(), optim::AdamWOptions{.lr = 1e-3});
  }

  void run(int64_t count) {
    data::Loader loader(dataset_, {.batch = 8, .workers = 2, .seed = seed_++, .prefetch = 2});
    data::Batch batch;
    for (int64_t step = 0, epoch = 0; step < count; ++epoch) {
      loader.epoch(epoch);
      for (; step < count && loader.next(batch); ++step) {
        const auto start = std::chrono::steady_clock::now();
        scaler_.scale(nn::cross_entropy(model_(batch.images), batch.labels)).backward();
        (void)scaler_.step(*adam_, {.clip_norm = 1});
        adam_->zero_grad();
        seconds_.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
    }
    {
      const NoGradGuard guard;
      EXPECT_EQ(model_(batch.images).size(1), 10);
    }
    train::save_model(file_, model_);
  }

  // Returns the 99th percentile of the step times so far, and empties the list.
  double take_p99() {
    const auto at = seconds_.begin() + static_cast<ptrdiff_t>(seconds_.size() * 99 / 100);
    std::nth_element(seconds_.begin(), at, seconds_.end());
    const double value = *at;
    seconds_.clear();
    return value;
  }

 private:
  const std::string file_;
  const data::test::FakeDataset dataset_{640};
  nn::Sequential model_;
  std::optional<optim::AdamW> adam_;
  optim::LossScaler scaler_;
  uint64_t seed_ = 1;
  std::vector<double> seconds_;
};

TEST(S1, soak_neither_grows_nor_leaves_anything_behind) {
  const testing::TemporaryDirectory directory;
  Soak soak(directory / "model.safetensors");
  const int64_t period = std::min<int64_t>(500, steps() / 6),
                warm = std::max(steps() / 10, 2 * period);
  for (int64_t done = 0; done < warm; done += period) {
    soak.run(period);
  }
  const double first = soak.take_p99();
  const int64_t files = open_files(), threads = running_threads(), before = resident_bytes();
  int64_t done = 0;
  for (; done < steps() - warm; done += period) {
    soak.run(period);
    ASSERT_EQ(open_files(), files) << "after " << done << " steps";
    ASSERT_EQ(running_threads(), threads) << "after " << done << " steps";
  }
  const int64_t grown = resident_bytes() - before;
  // Allows 1 MiB per 10,000 steps, plus 2 MiB that a short run has not yet touched.
  EXPECT_LE(grown, (done / 10'000 << 20) + (2 << 20)) << "in " << done << " steps";
  std::printf("%lld steps: %lld bytes grown, p99 of a step %.3f ms, %.3f ms at the end\n",
              static_cast<long long>(done), static_cast<long long>(grown), 1e3 * first,
              1e3 * soak.take_p99());
}

// Positions, samples and random numbers beyond 2^31 and 2^32 work like the first ones.
TEST(S3, counters_do_not_wrap) {
  const int64_t size = (int64_t(1) << 33) + 7;
  const data::test::FakeDataset dataset(size, 1, 1);
  const data::Permutation order(size, 5, 1);
  for (const int64_t near : {int64_t(1) << 31, int64_t(1) << 32}) {
    data::Loader loader(dataset, {.batch = 50, .workers = 2, .seed = 5, .cache_bytes = 0});
    const int64_t first = near / 50 - 2;
    loader.epoch(1, first);
    data::Batch batch;
    std::set<int64_t> seen;
    for (int64_t number = first; number < first + 5; ++number) {
      ASSERT_TRUE(loader.next(batch));
      ASSERT_EQ(batch.first, number * 50);
      for (int64_t i = 0; i < batch.size; ++i) {
        const int64_t index = batch.indices[static_cast<size_t>(i)];
        ASSERT_EQ(index, order(number * 50 + i));
        ASSERT_TRUE(index >= 0 && index < size && seen.insert(index).second);
      }
    }
    for (const int64_t index : {int64_t(0), near - 1}) {
      philox::Stream low = data::sample_stream(5, 0, index),
                     high = data::sample_stream(5, 0, index + near);
      EXPECT_NE(low.next(), high.next());
    }
  }
}

TEST(S5, tensors_loaders_and_communicators_come_and_go) {
  const data::test::FakeDataset dataset(8);
  const auto churn = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const Tensor x = zeros({1 + i % 100, 3});
      ASSERT_EQ(x.numel(), 3 * (1 + i % 100));
      if (i % 20 == 0) {
        data::Loader loader(dataset, {.batch = 4, .workers = static_cast<int>(i / 20 % 3)});
        data::Batch batch;
        loader.epoch(0);
        ASSERT_TRUE(i % 40 == 0 || loader.next(batch));
      }
      if (i % 200 == 0) {
        dist::run_threads(2, [](dist::Communicator& ranks) { ranks.barrier(); });
      }
    }
  };
  churn(400);
  const int64_t files = open_files(), threads = running_threads();
  const int64_t before = resident_bytes();
  churn(std::min<int64_t>(200'000, 6 * steps()));
  EXPECT_EQ(open_files(), files);
  EXPECT_EQ(running_threads(), threads);
  EXPECT_LE(resident_bytes() - before, 4 << 20);
}

// Neither backward nor the destructor recurses.
TEST(S5, a_graph_of_depth_100000) {
  Tensor x = zeros({2});
  x.require_grad();
  for (const bool backward : {true, false}) {
    Tensor y = x;
    for (int i = 0; i < 100'000; ++i) {
      y = y + 1.0;
    }
    if (backward) {
      sum(y).backward();
      EXPECT_EQ(x.grad().data<float>()[1], 1);
    }
  }
}

}  // namespace
}  // namespace binade::soak_test
