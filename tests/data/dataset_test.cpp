#include <binade/data/dataset.h>
#include <binade/data/identity.h>
#include <binade/data/loader.h>
#include <binade/data/permutation.h>
#include <binade/kernels/base/parallel.h>

#include <cmath>
#include <set>
#include <thread>

#include "tests/data/fake_dataset.h"
#include "tests/data/test_files.h"

namespace binade::data::dataset_test {
namespace {

using test::FakeDataset;

TEST(Permutation, is_one_for_every_size) {
  for (int64_t size : {1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097}) {
    const Permutation permutation(size, 5, 1);
    std::set<int64_t> seen;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t value = permutation(i);
      EXPECT_TRUE(value >= 0 && value < size);
      seen.insert(value);
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
  }
  EXPECT_ERROR(Permutation(3, 0, 0)(3), "position 3");
  EXPECT_ERROR(Permutation(0, 0, 0)(0), "position 0");
}

TEST(Permutation, is_uniform) {
  constexpr int64_t kSize = 10, kEpochs = 20000;
  int counts[kSize][kSize] = {};
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const Permutation permutation(kSize, 1, epoch);
    for (int64_t i = 0; i < kSize; ++i) {
      ++counts[i][permutation(i)];
    }
  }
  const double expected = double(kEpochs) / kSize;
  double chi_squared = 0;
  for (const auto& row : counts) {
    for (int count : row) {
      chi_squared += (count - expected) * (count - expected) / expected;
    }
  }
  EXPECT_LT(chi_squared, 81 + 5 * std::sqrt(2 * 81.0));  // 81 degrees of freedom
  EXPECT_NE(Permutation(1000, 1, 0)(0), Permutation(1000, 2, 0)(0));
}

TEST(Dataset, subset) {
  const auto inner = std::make_shared<FakeDataset>(10);
  const Subset subset(inner, {7, 2, 7});
  EXPECT_EQ(subset.size(), 3);
  EXPECT_EQ(subset.get(0).image, inner->get(7).image);
  EXPECT_EQ(subset.describe(1), "fake/2.png");
  EXPECT_EQ(subset.class_count(), 10);
  EXPECT_ERROR(subset.get(3), "index 3");
  EXPECT_ERROR(Subset(inner, {10}), "index 10");
}

TEST(Dataset, split_is_complete_and_repeatable) {
  const auto inner = std::make_shared<FakeDataset>(1000);
  const Split split = split_dataset(inner, 0.1, 4), again = split_dataset(inner, 0.1, 4);
  EXPECT_EQ(split.first->size() + split.second->size(), 1000);
  EXPECT_NEAR(static_cast<double>(split.second->size()), 100, 40);
  EXPECT_EQ(split.second->describe(5), again.second->describe(5));
  std::set<std::string> names;
  for (const auto& part : {split.first, split.second}) {
    for (int64_t i = 0; i < part->size(); ++i) {
      names.insert(part->describe(i));
    }
  }
  EXPECT_EQ(names.size(), 1000u);
}

TEST(Dataset, cache_reads_once_and_keeps_to_its_limit) {
  const auto inner = std::make_shared<FakeDataset>(20);
  std::atomic<int> reads = 0;
  inner->before_get = [&](int64_t) { ++reads; };
  const CachedDataset all(inner, 1 << 20);
  for (int round = 0; round < 3; ++round) {
    for (int64_t i = 0; i < 20; ++i) {
      EXPECT_EQ(all.get(i).label, i % 10);
    }
  }
  EXPECT_EQ(reads, 20);
  EXPECT_GT(all.cached_bytes(), 20 * 48);
  const CachedDataset few(inner, all.cached_bytes() / 2);
  for (int64_t i = 0; i < 40; ++i) {
    few.get(i % 20);
  }
  EXPECT_EQ(reads, 20 + 20 + 10);
  EXPECT_LE(few.cached_bytes(), all.cached_bytes() / 2);
}

TEST(Dataset, cache_from_several_threads) {
  const auto inner = std::make_shared<FakeDataset>(50);
  const CachedDataset cache(inner, 1 << 20);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int64_t i = 0; i < 500; ++i) {
        wrong += cache.get(i % 50).image != inner->get(i % 50).image;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Statistics, match_a_plain_computation_for_any_thread_count) {
  const FakeDataset dataset(300, 5, 3);
  std::vector<double> sum(3), squares(3);
  for (int64_t i = 0; i < 300; ++i) {
    const Sample sample = dataset.get(i);
    for (size_t k = 0; k < sample.image.pixels.size(); ++k) {
      const double value = sample.image.pixels[k] / 255.0;
      sum[k % 3] += value;
      squares[k % 3] += value * value;
    }
  }
  kernels::set_threads(1);
  const DatasetStatistics one = compute_mean_std(dataset);
  kernels::set_threads(3);
  const DatasetStatistics three = compute_mean_std(dataset);
  kernels::set_threads(0);
  EXPECT_EQ(one.mean, three.mean);
  EXPECT_EQ(one.deviation, three.deviation);
  for (size_t c = 0; c < 3; ++c) {
    const double mean = sum[c] / (300 * 25);
    EXPECT_NEAR(one.mean[c], mean, 1e-6);
    EXPECT_NEAR(one.deviation[c], std::sqrt(squares[c] / (300 * 25) - mean * mean), 1e-6);
  }
}

TEST(Statistics, bad_files_and_constant_pictures) {
  FakeDataset dataset(100);
  dataset.before_get = [](int64_t index) { check(index % 10 != 3, "fake ", index, " is broken"); };
  EXPECT_ERROR(compute_mean_std(dataset), "is broken");
  EXPECT_EQ(compute_mean_std(dataset, true).bad_files, 10);
  EXPECT_EQ(compute_mean_std(dataset, true).samples, 90);
  EXPECT_ERROR(compute_mean_std(FakeDataset(0)), "no readable sample");
  const auto inner = std::make_shared<FakeDataset>(1, 1, 3);
  const DatasetStatistics constant = compute_mean_std(Subset(inner, {0, 0}));
  EXPECT_EQ(constant.deviation, (std::vector<float>{1, 1, 1}));
}

// Names and labels in a given order; only get() is slow.
class List : public FakeDataset {
 public:
  List(std::vector<int64_t> names, std::vector<int64_t> labels)
      : FakeDataset(static_cast<int64_t>(names.size())),
        names_(std::move(names)),
        labels_(std::move(labels)) {}
  Sample get(int64_t) const override { fail("decoded"); }
  std::string describe(int64_t index) const override {
    return FakeDataset::describe(names_.at(static_cast<size_t>(index)));
  }
  std::optional<int64_t> label(int64_t index) const override {
    return labels_.empty() ? std::nullopt : std::optional(labels_.at(static_cast<size_t>(index)));
  }

 private:
  std::vector<int64_t> names_, labels_;
};

TEST(Identity, names_the_difference) {
  const DataIdentity before = identify(List({1, 2, 3, 4}, {0, 1, 0, 1}));
  EXPECT_EQ(before.samples, 4);
  EXPECT_EQ(parse_identity(to_string(before)), before);
  for (const char* bad : {"", "4", "4 x", "-4 1 2 3", "4 0 0 0"}) {
    EXPECT_THROW(parse_identity(bad), Error) << bad;
  }
  struct Case {
    List list;
    const char* difference;
  };
  const Case kCases[] = {{{{1, 2, 3, 4}, {0, 1, 0, 1}}, ""},
                         {{{1, 2, 3, 4}, {}}, ""},  // unknown labels
                         {{{1, 2, 3, 4}, {1, 0, 0, 1}}, "other labels"},
                         {{{2, 1, 3, 4}, {1, 0, 0, 1}}, "the same samples in another order"},
                         {{{1, 2, 3, 5}, {0, 1, 0, 1}}, "other samples"},
                         {{{1, 2, 3, 3}, {0, 1, 0, 1}}, "other samples"},
                         {{{1, 2, 3}, {0, 1, 0}}, "3 samples instead of 4"}};
  for (const Case& test : kCases) {
    EXPECT_EQ(difference(identify(test.list), before), test.difference);
  }
}

TEST(Identity, decorators_and_loaders_forward_it) {
  const auto list =
      std::make_shared<List>(std::vector<int64_t>{1, 2, 3, 4}, std::vector<int64_t>{0, 1, 0, 1});
  const List same({4, 2}, {1, 1});
  EXPECT_EQ(identify(Subset(list, {3, 1})), identify(same));
  EXPECT_EQ(identify(CachedDataset(list, 1000)), identify(*list));
  EXPECT_EQ(Loader(list, {.batch = 1, .workers = 0, .shard = 1, .shard_count = 2}).identity(),
            identify(*list));
}

TEST(Identity, does_not_depend_on_threads) {
  const FakeDataset dataset(20'000);
  kernels::set_threads(1);
  const DataIdentity one = identify(dataset);
  kernels::set_threads(3);
  EXPECT_EQ(identify(dataset), one);
  kernels::set_threads(0);
  EXPECT_EQ(one.labels, 0u);
}

}  // namespace
}  // namespace binade::data::dataset_test
