// Without the samples in Batch::repeated, the shards of an epoch have each sample once.
#include <binade/core/tensor/create.h>
#include <binade/data/loader.h>
#include <binade/data/sets/tensor_dataset.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/data/fake_rows.h"

namespace binade::data::repeated_samples_test {
namespace {

using Make = std::function<std::unique_ptr<Loader>(const LoaderOptions&)>;

// The indices of all shards without the repeated ones; `read` counts both.
std::vector<int64_t> own_indices(const Make& make, LoaderOptions options, int64_t& read) {
  std::vector<int64_t> all;
  for (int64_t shard = 0; shard < options.shard_count; ++shard) {
    options.shard = shard;
    const auto loader = make(options);
    for (const Batch& batch : loader->epoch(3)) {
      EXPECT_EQ(batch.size, std::ssize(batch.indices));
      EXPECT_LE(batch.repeated, batch.size);
      all.insert(all.end(), batch.indices.begin(), batch.indices.end() - batch.repeated);
      read += batch.size;
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

void expect_each_once(const Make& make, int64_t samples, const LoaderOptions& options) {
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < samples; ++i) {
    expected.push_back(i);
  }
  for (const int64_t shards : {1, 2, 3, 5}) {
    for (const UnevenShards rule : {UnevenShards::pad, UnevenShards::keep}) {
      LoaderOptions own = options;
      own.shard_count = shards;
      own.uneven_shards = rule;
      int64_t read = 0;
      EXPECT_EQ(own_indices(make, own, read), expected) << samples << " on " << shards;
      if (rule == UnevenShards::pad && !options.budget) {
        EXPECT_EQ(read, (samples + shards - 1) / shards * shards);
      } else if (rule == UnevenShards::keep) {
        EXPECT_EQ(read, samples);
      }
    }
  }
}

TEST(RepeatedSamples, OfADataset) {
  for (const int64_t samples : {2, 10, 11, 15}) {
    const auto set = std::make_shared<TensorDataset>(
        NamedTensors{{"x", randn({samples, 2})}, {"tokens", zeros({samples, 4}, DType::i64)}});
    const Make make = [&](const LoaderOptions& options) {
      return std::make_unique<Loader>(set, options);
    };
    for (const bool shuffle : {false, true}) {
      expect_each_once(make, samples, {.batch = 3, .workers = 0, .shuffle = shuffle});
      expect_each_once(make, samples,
                       {.workers = 0, .shuffle = shuffle, .budget = TokenBudget{.tokens = 24}});
    }
  }
}

TEST(RepeatedSamples, OfRows) {
  for (const int64_t samples : {2, 10, 11, 15}) {
    const auto rows = std::make_shared<test::FakeRows>(samples);
    const Make make = [&](const LoaderOptions& options) {
      return std::make_unique<Loader>(rows, options);
    };
    expect_each_once(make, samples, {.batch = 3, .workers = 0, .shuffle = false});
    expect_each_once(make, samples, {.batch = 3, .workers = 0, .shuffle_buffer = 4});
  }
}

}  // namespace
}  // namespace binade::data::repeated_samples_test
