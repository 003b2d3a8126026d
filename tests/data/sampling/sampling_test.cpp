// Tests weighted samplers, class weights, and batches with a token budget.
#include <binade/core/tensor/create.h>
#include <binade/data/collate/collate.h>
#include <binade/data/loader.h>
#include <binade/data/sets/combine.h>
#include <binade/data/sets/tensor_dataset.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "tests/data/fake_dataset.h"
#include "tests/data/test_files.h"

namespace binade::data::sampling_test {
namespace {

TensorDataset labelled(const std::vector<int64_t>& labels) {
  return TensorDataset({{"labels", Tensor::from(labels)}});
}

std::vector<int64_t> indices_of(Loader& loader, int64_t epoch) {
  std::vector<int64_t> all;
  for (const Batch& batch : loader.epoch(epoch)) {
    all.insert(all.end(), batch.indices.begin(), batch.indices.end());
  }
  return all;
}

TEST(WeightedSampler, draws_in_proportion) {
  const WeightedSampler sampler({1, 0, 3, 6}, {.samples = 40000});
  std::map<int64_t, double> counts;
  for (const int64_t index : sampler.order(4, 5, 2)) {
    ++counts[index];
  }
  EXPECT_EQ(counts.count(1), 0u);
  EXPECT_NEAR(counts[0], 4000, 5 * std::sqrt(4000));
  EXPECT_NEAR(counts[2], 12000, 5 * std::sqrt(12000));
  EXPECT_NEAR(counts[3], 24000, 5 * std::sqrt(24000));
  EXPECT_NE(sampler.order(4, 5, 2), sampler.order(4, 5, 3));
  EXPECT_NE(sampler.order(4, 5, 2), sampler.order(4, 6, 2));
  EXPECT_EQ(sampler.order(4, 5, 2), sampler.order(4, 5, 2));
}

TEST(WeightedSampler, without_replacement_draws_each_once) {
  std::vector<double> weights(60, 1);
  weights[7] = 0;
  std::fill(weights.begin(), weights.begin() + 5, 200);
  const WeightedSampler sampler(weights, {.samples = 30, .replacement = false});
  int64_t heavy = 0;
  for (int64_t epoch = 0; epoch < 50; ++epoch) {
    const std::vector<int64_t> order = sampler.order(60, 1, epoch);
    const std::set<int64_t> once(order.begin(), order.end());
    EXPECT_EQ(once.size(), 30u);
    EXPECT_FALSE(once.contains(7));
    heavy += std::count_if(order.begin(), order.end(), [](int64_t index) { return index < 5; });
  }
  EXPECT_GT(heavy, 245);  // out of 250
}

TEST(WeightedSampler, misuse_is_an_error) {
  EXPECT_ERROR(WeightedSampler({1, -1}), "weight -1 of sample 1");
  EXPECT_ERROR(WeightedSampler({1, NAN}), "weight nan of sample 1");
  EXPECT_ERROR(WeightedSampler({0, 0}), "the sum 0");
  EXPECT_ERROR(WeightedSampler({}), "0 weights");
  EXPECT_ERROR(WeightedSampler({1, 0}, {.samples = 2, .replacement = false}),
               "1 weights above 0 for 2 samples without replacement");
  const TensorDataset set = labelled({0, 1, 2});
  EXPECT_ERROR(Loader(set, {.sampler = WeightedSampler({1, 1})}),
               "2 weights, expected one for each of the 3 samples");
  struct Wrong : Sampler {
    int64_t size(int64_t) const override { return 2; }
    std::vector<int64_t> order(int64_t, uint64_t, int64_t epoch) const override {
      return epoch == 0 ? std::vector<int64_t>{0, 3} : std::vector<int64_t>{0};
    }
  };
  Loader loader(set, {.sampler = Wrong()});
  EXPECT_ERROR(loader.epoch(0), "draws sample 3, expected one of 3");
  EXPECT_ERROR(loader.epoch(1), "epoch 1 has 1 samples, but its size() is 2");
  EXPECT_ERROR(Loader(set, {.sampler = Wrong(), .budget = TokenBudget{.tokens = 1}}),
               "a budget and also a sampler");
}

TEST(WeightedSampler, repeated_samples_get_other_random_numbers) {
  const TensorDataset set = labelled({0, 1});
  Loader loader(set, {.batch = 8,
                      .workers = 0,
                      .sampler = WeightedSampler({1, 0}, {.samples = 8}),
                      .map = [](Sample& sample, philox::Stream& random) {
                        sample.set("r", full({}, random.next_uniform()));
                      }});
  const std::vector<float> draws = (*loader.begin())["r"].to_vector<float>();
  EXPECT_EQ(std::set<float>(draws.begin(), draws.end()).size(), 8u);
}

TEST(ClassWeights, are_inverse_frequencies) {
  const TensorDataset set = labelled({0, 1, 1, 1, 2, 2, 2, 2});
  EXPECT_EQ(class_counts(set), (std::vector<int64_t>{1, 3, 4}));
  const std::vector<float> weights = class_weights(set).to_vector<float>();
  EXPECT_FLOAT_EQ(weights[0], 8.f / 3);
  EXPECT_FLOAT_EQ(weights[1], 8.f / 9);
  EXPECT_FLOAT_EQ(weights[2], 8.f / 12);
  EXPECT_ERROR(class_weights(labelled({0, 2})), "class 1 has no samples");
  EXPECT_ERROR(class_weights(TensorDataset({{"x", arange(3)}})), "has no label");
  EXPECT_ERROR(class_weights(TensorDataset({{"labels", zeros({3, 2})}})), "expected one class");
  EXPECT_ERROR(class_weights(labelled({0, -1})), "label -1");
  // One dataset shows its classes only in get(), the other knows them.
  const test::FakeDataset fake(30);
  EXPECT_EQ(class_counts(fake), std::vector<int64_t>(10, 3));
  EXPECT_ERROR(class_weights(test::FakeDataset(7)), "class 7 has no samples");
  EXPECT_ERROR(class_weights(std::shared_ptr<const Dataset>()), "no dataset");
}

TEST(ClassWeights, balanced_sampler_draws_classes_equally) {
  std::vector<int64_t> labels(200, 1);
  labels[3] = 0;
  const TensorDataset set = labelled(labels);
  Loader loader(set, {.batch = 100, .sampler = balanced_sampler(set, {.samples = 4000})});
  int64_t rare = 0;
  for (const int64_t index : indices_of(loader, 0)) {
    rare += index == 3 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(rare), 2000, 5 * std::sqrt(1000));
}

// Rows of `length(i)` tokens; counts how often they are read.
class Lengths : public Dataset {
 public:
  explicit Lengths(std::vector<int64_t> lengths) : lengths_(std::move(lengths)) {}
  int64_t size() const override { return std::ssize(lengths_); }
  Sample get(int64_t index) const override {
    ++reads;
    check(lengths_[static_cast<size_t>(index)] >= 0, "broken");
    return {.fields = {{"tokens", zeros({lengths_[static_cast<size_t>(index)]})}}};
  }
  mutable std::atomic<int> reads = 0;

 private:
  std::vector<int64_t> lengths_;
};

TEST(TokenBudget, batches_fit_and_are_alike) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 200; ++i) {
    lengths.push_back(1 + i * i % 97);
  }
  const Lengths set(lengths);
  Loader loader(set, {.workers = 2,
                      .budget = TokenBudget{.tokens = 400, .width = 4, .max_batch = 30},
                      .collate = pad("tokens")});
  const int64_t batches = loader.batches_per_epoch();
  int64_t padded = 0, tokens = 0;
  std::set<std::vector<int64_t>> first, second;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<int64_t> all;
    int64_t count = 0, before = 0;
    bool ascending = true;
    for (const Batch& batch : loader.epoch(epoch)) {
      EXPECT_LE((batch["tokens"].size(1) + 3) / 4 * 4 * batch.size, 400);
      EXPECT_LE(batch.size, 30);
      ascending = ascending && batch["tokens"].size(1) >= before;
      before = batch["tokens"].size(1);
      all.insert(all.end(), batch.indices.begin(), batch.indices.end());
      std::vector<int64_t> members = batch.indices;
      std::sort(members.begin(), members.end());
      (epoch == 0 ? first : second).insert(members);
      padded += batch["tokens"].numel();
      ++count;
    }
    EXPECT_FALSE(ascending);  // the batches are shuffled
    EXPECT_EQ(count, batches);
    std::sort(all.begin(), all.end());
    for (int64_t i = 0; i < 200; ++i) {
      EXPECT_EQ(all.at(static_cast<size_t>(i)), i);
    }
  }
  for (const int64_t length : lengths) {
    tokens += 2 * length;
  }
  EXPECT_LT(static_cast<double>(padded), 1.15 * static_cast<double>(tokens));
  EXPECT_NE(first, second);  // so are samples of equal length
}

TEST(TokenBudget, in_order_without_shuffle) {
  const Lengths set({3, 1, 2, 9, 2, 0});
  Loader loader(set, {.workers = 0,
                      .shuffle = false,
                      .budget = TokenBudget{.tokens = 9, .width = 1},
                      .collate = pad("tokens")});
  std::vector<std::vector<int64_t>> batches;
  for (const Batch& batch : loader) {
    batches.push_back(batch.indices);
  }
  EXPECT_EQ(batches, (std::vector<std::vector<int64_t>>{{1, 5, 2, 4}, {0}, {3}}));
}

TEST(TokenBudget, reads_lengths_once) {
  const auto set = std::make_shared<Lengths>(std::vector<int64_t>{3, 4, 5});
  Loader loader(set, {.workers = 0, .budget = TokenBudget{.tokens = 8}, .collate = pad("tokens")});
  indices_of(loader, 0);
  indices_of(loader, 1);
  EXPECT_EQ(set->reads, 3);  // the loader's cache keeps them
  const TensorDataset rows({{"tokens", zeros({6, 4})}});
  Loader known(rows, {.budget = TokenBudget{.tokens = 8}});
  EXPECT_EQ(known.batches_per_epoch(), 6);  // 4 tokens count as 8
}

TEST(TokenBudget, misuse_is_an_error) {
  const Lengths set({3, 40, -1});
  const auto with = [&](TokenBudget budget, BadFilePolicy policy) {
    LoaderOptions options{.workers = 0};
    options.budget = budget;
    options.bad_file = policy;
    Loader loader(set, options);
    return loader.batches_per_epoch();
  };
  EXPECT_ERROR(with({.tokens = 0}, BadFilePolicy::skip), "a budget of 0 tokens");
  EXPECT_ERROR(with({.tokens = 100}, BadFilePolicy::fail), "loader: sample 2: broken");
  EXPECT_ERROR(with({.tokens = 30}, BadFilePolicy::skip),
               "loader: sample 1 has 40 tokens, 40 in multiples of 8, more than the budget of 30");
  EXPECT_ERROR(with({.tokens = 100, .field = "words"}, BadFilePolicy::fail),
               "expected a field 'words'");
  EXPECT_ERROR(with({.tokens = 100, .width = 0}, BadFilePolicy::skip), "width 0");
  EXPECT_EQ(with({.tokens = 100}, BadFilePolicy::replace), 2);
  const Lengths good({3});
  EXPECT_ERROR(Loader(good, {.drop_last = true, .budget = TokenBudget{.tokens = 9}}), "drop_last");
  EXPECT_ERROR(Loader(good, {.budget = TokenBudget{.tokens = 9},
                             .shard = 1,
                             .shard_count = 2,
                             .uneven_shards = UnevenShards::drop}),
               "gives 1 batches for 2 shards");
}

// After some steps on 3 ranks, the rest of the epoch goes to 2 or 5 ranks with other batches.
TEST(Sampling, AnEpochGoesOnWithAnyNumberOfShards) {
  std::vector<int64_t> ids(47);
  std::iota(ids.begin(), ids.end(), 0);
  const TensorDataset set({{"x", Tensor::from(ids)}});
  const auto read = [&](int64_t shard, int64_t shards, int64_t batch, int64_t done, int64_t most) {
    Loader loader(set, {.batch = batch,
                        .workers = static_cast<int>(shard % 2),
                        .seed = 6,
                        .shard = shard,
                        .shard_count = shards,
                        .uneven_shards = UnevenShards::keep});
    std::vector<int64_t> seen;
    for (const Batch& part : loader.epoch_after(2, done)) {
      if (most-- == 0) {
        break;
      }
      seen.insert(seen.end(), part.indices.begin(), part.indices.end());
    }
    return seen;
  };
  const std::vector<int64_t> order = read(0, 1, 47, 0, 1);
  for (const int64_t steps : {0, 1, 3}) {
    for (const int64_t shards : {1, 2, 5}) {
      std::vector<int64_t> seen;
      const auto add = [&](const std::vector<int64_t>& more) {
        seen.insert(seen.end(), more.begin(), more.end());
      };
      for (int64_t shard = 0; shard < 3 && steps > 0; ++shard) {
        add(read(shard, 3, 4, 0, steps));
      }
      for (int64_t shard = 0; shard < shards; ++shard) {
        add(read(shard, shards, 3 + shards, 12 * steps, 100));
      }
      std::sort(seen.begin(), seen.end());
      EXPECT_EQ(seen, ids) << steps << " steps, then " << shards << " shards";
    }
  }
  EXPECT_EQ(read(0, 1, 50, 40, 1), std::vector<int64_t>(order.begin() + 40, order.end()));
  EXPECT_TRUE(read(0, 1, 5, 47, 9).empty());
  EXPECT_ERROR(read(0, 1, 5, 48, 1),
               "got 48 samples of the epoch that were used, expected 0 to 47");
}

}  // namespace
}  // namespace binade::data::sampling_test
