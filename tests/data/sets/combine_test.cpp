// Tests map, filter, concat, zip, subset, cache, collect, split, k_fold and TensorDataset.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/loader.h>
#include <binade/data/sets/combine.h>
#include <binade/data/sets/tensor_dataset.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>

#include "tests/data/fake_dataset.h"
#include "tests/data/fake_rows.h"
#include "tests/data/test_files.h"

namespace binade::data::combine_test {
namespace {

using test::FakeDataset;
using test::FakeRows;

// Sample i is {"x": from + i}.
TensorDataset counting(int64_t size, int64_t from = 0, const char* name = "x") {
  return TensorDataset({{name, arange(from, from + size)}});
}

std::vector<int64_t> all(const Dataset& set, const char* name = "x") {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < set.size(); ++i) {
    values.push_back(static_cast<int64_t>(set.get(i)[name].at(0)));
  }
  return values;
}

TEST(TensorDataset, has_the_rows) {
  const Tensor x = randn({4, 3, 2}), y = arange(4), wide = randn({3, 4}).transpose(0, 1);
  const TensorDataset set({{"x", x}, {"y", y}, {"w", wide}});
  EXPECT_EQ(set.size(), 4);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(set.get(i)["x"].to_vector<float>(), x[i].to_vector<float>());
    EXPECT_EQ(set.get(i)["y"].to_vector<int64_t>(), (std::vector<int64_t>{i}));
    EXPECT_EQ(set.get(i)["w"].to_vector<float>(), wide[i].to_vector<float>());
  }
  Tensor learned = randn({4});
  learned.require_grad();
  EXPECT_FALSE(TensorDataset({{"p", learned}}).get(0)["p"].requires_grad());
  EXPECT_EQ(TensorDataset({{"e", zeros({3, 0})}}).get(1)["e"].sizes(), (Dims{0}));
}

TEST(TensorDataset, ids_and_labels_are_those_of_the_row) {
  const TensorDataset set({{"x", arange(3)}, {"labels", arange(5, 8)}});
  EXPECT_NE(set.id(0), set.id(1));
  EXPECT_EQ(set.id(1), TensorDataset({{"x", arange(1, 2)}, {"labels", arange(6, 7)}}).id(0));
  EXPECT_EQ(set.label(2), 7);
  EXPECT_EQ(TensorDataset({{"labels", zeros({3, 2}, DType::i64)}}).label(1), std::nullopt);
  EXPECT_EQ(TensorDataset({{"labels", zeros({3})}}).label(1), std::nullopt);
}

TEST(TensorDataset, misuse_is_an_error) {
  EXPECT_ERROR(TensorDataset({}), "got no tensors");
  EXPECT_ERROR(TensorDataset({{"x", arange(3)}, {"y", arange(4)}}),
               "'y' is [4], expected 3 rows as in 'x' [3]");
  EXPECT_ERROR(TensorDataset({{"x", full({}, 1)}}), "'x' is a scalar");
  EXPECT_ERROR(TensorDataset({{"x", Tensor()}}), "'x' is an undefined tensor");
  EXPECT_ERROR(TensorDataset({{"", arange(3)}}), "without a name");
  EXPECT_ERROR(TensorDataset({{"x", arange(3)}, {"x", arange(3)}}), "two fields 'x'");
  EXPECT_ERROR(counting(3).get(3), "index 3, expected one of 3");
  const int line = __LINE__ + 1;
  const auto load_nothing = [] { Loader(TensorDataset({{"x", zeros({0, 2})}}), {}); };
  EXPECT_ERROR(load_nothing(),
               text("the dataset is empty (the loader of combine_test.cpp:", line, ")"));
}

TEST(Combine, map_changes_samples) {
  const auto twice = map(counting(4), [](Sample sample) {
    sample.set("x", sample["x"] * 2);
    return sample;
  });
  EXPECT_EQ(all(*twice), (std::vector<int64_t>{0, 2, 4, 6}));
  EXPECT_EQ(twice->id(2), counting(4).id(2));
  const auto pictures = map(std::make_shared<FakeDataset>(5),
                            [](Sample sample) { return Sample{.label = 9 - sample.label}; });
  EXPECT_EQ(pictures->get(2).label, 7);
  EXPECT_EQ(pictures->label(2), std::nullopt);
  EXPECT_EQ(pictures->channels(), kUnknownChannels);
  EXPECT_EQ(pictures->describe(2), "fake/2.png");
  EXPECT_ERROR(map(counting(4), nullptr), "no function");
  EXPECT_ERROR(map(std::shared_ptr<const Dataset>(), [](Sample s) { return s; }), "no dataset");
  const auto failing = map(counting(4), [](Sample sample) {
    check(sample["x"].at(0) != 2, "not two");
    return sample;
  });
  Loader loader(failing, {.workers = 0, .shuffle = false, .bad_file = BadFilePolicy::skip});
  EXPECT_EQ((*loader.begin())["x"].to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 3}));
}

TEST(Combine, map_of_rows) {
  const FakeRows rows(5);
  const auto mapped = map(rows, [](Sample sample) {
    return Sample{.fields = {{"v", Tensor::from(sample.values)}}};
  });
  Loader loader(mapped, {.workers = 2, .shuffle = false});
  EXPECT_EQ((*loader.begin())["v"].to_vector<float>(),
            (std::vector<float>{0, 0, 1, 2, 2, 4, 3, 6, 4, 8}));
}

TEST(Combine, filter_keeps_the_order) {
  FakeDataset pictures(30);
  pictures.before_get = [](int64_t index) { check(index != 4, "broken"); };
  const auto even = filter(pictures, [](const Sample& sample) { return sample.label % 5 == 0; });
  EXPECT_EQ(even->size(), 7);  // 0, 5, 10, ... and the broken sample, which the loader handles
  EXPECT_EQ(even->describe(1), "fake/4.png");
  EXPECT_EQ(filter(counting(3), [](const Sample&) { return false; })->size(), 0);
  EXPECT_ERROR(filter(counting(3), [](const Sample& s) { return s["y"].item() > 0; }),
               "no field 'y'");
  EXPECT_ERROR(filter(counting(3), nullptr), "no function");
}

TEST(Combine, concat) {
  const auto both = concat({counting(3), counting(0, 9), counting(2, 10)});
  EXPECT_EQ(all(*both), (std::vector<int64_t>{0, 1, 2, 10, 11}));
  EXPECT_TRUE(both->in_memory());
  EXPECT_ERROR(both->get(5), "index 5, expected one of 5");
  EXPECT_EQ(concat({FakeDataset(3), FakeDataset(4)})->class_count(), 10);
  EXPECT_EQ(concat({FakeDataset(3), FakeDataset(4)})->channels(), 3);
  EXPECT_EQ(concat({FakeDataset(3), FakeDataset(4, 4, 1)})->channels(), kUnknownChannels);
  EXPECT_ERROR(concat({}), "no datasets");
  EXPECT_ERROR(concat({std::shared_ptr<const Dataset>()}), "an empty pointer");
  struct Other : FakeDataset {
    using FakeDataset::FakeDataset;
    std::vector<std::string> class_names() const override { return {"a"}; }
  };
  EXPECT_ERROR(concat({FakeDataset(3), Other(3)}), "other class names");
  Loader mixed(concat({counting(3), counting(3, 0, "y")}), {.workers = 0, .shuffle = false});
  EXPECT_ERROR(mixed.begin(), "sample 3 (sample 0) has no field 'x'");
}

TEST(Combine, zip) {
  const auto pairs = zip({FakeDataset(4), counting(4), counting(4, 7, "y")});
  const Sample sample = pairs->get(2);
  EXPECT_EQ(sample.image.pixels.size(), 48u);
  EXPECT_EQ(sample.label, 2);
  EXPECT_EQ(sample["x"].at(0), 2);
  EXPECT_EQ(sample["y"].at(0), 9);
  EXPECT_EQ(pairs->channels(), 3);
  EXPECT_EQ(pairs->class_count(), 10);
  EXPECT_EQ(pairs->describe(1), "fake/1.png");
  const auto others = zip({FakeDataset(4), counting(4), counting(4, 8, "y")});
  EXPECT_NE(pairs->id(1), pairs->id(2));
  EXPECT_NE(pairs->id(1), others->id(1));
  EXPECT_ERROR(zip({counting(4), counting(3)}), "datasets of 4 and 3 samples");
  EXPECT_ERROR(zip({counting(4), counting(4)}), "two datasets have the field 'x'");
  EXPECT_ERROR(zip({FakeDataset(4), FakeDataset(4)}), "two datasets have an image");
  EXPECT_ERROR(zip({}), "no datasets");
}

TEST(Combine, subset_and_cache) {
  EXPECT_EQ(all(*subset(counting(5), {4, 0, 4})), (std::vector<int64_t>{4, 0, 4}));
  EXPECT_ERROR(subset(counting(5), {5}), "index 5");
  std::atomic<int> reads = 0;
  const auto slow = map(counting(5), [&](Sample sample) {
    ++reads;
    return sample;
  });
  const auto kept = cache(slow);
  for (int round = 0; round < 3; ++round) {
    Sample sample = kept->get(2);
    sample["x"].fill_(77);  // the cache is unaffected
    EXPECT_EQ(kept->get(2)["x"].at(0), 2);
  }
  EXPECT_EQ(reads, 1);
  EXPECT_ERROR(cache(slow, -1), "max_bytes -1");
}

TEST(Combine, collect_gives_rows_random_access) {
  const auto rows = collect(std::make_shared<FakeRows>(7));
  EXPECT_EQ(rows->size(), 7);
  EXPECT_EQ(rows->get(5).values, (std::vector<float>{5, 10}));
  EXPECT_EQ(rows->describe(3), "fake:3");
  Loader loader(rows, {.batch = 7, .workers = 2});
  EXPECT_EQ((*loader.begin()).images.sizes(), (Dims{7, 2}));
  const FakeRows stream(3);
  EXPECT_ERROR(Loader(stream, {.sampler = WeightedSampler({1, 1, 1})}), "data::collect()");
  EXPECT_ERROR(Loader(stream, {.budget = TokenBudget{.tokens = 9}}), "data::collect()");
}

TEST(Combine, split_has_exact_sizes) {
  for (const double share : {0.0, 0.1, 0.25, 1.0}) {
    const auto [first, second] = split(counting(40), {.share = share, .seed = 3});
    EXPECT_EQ(second->size(), std::llround(40 * share));
    std::vector<int64_t> both = all(*first), rest = all(*second);
    EXPECT_TRUE(std::is_sorted(both.begin(), both.end()));
    both.insert(both.end(), rest.begin(), rest.end());
    std::sort(both.begin(), both.end());
    EXPECT_EQ(both, all(counting(40)));
  }
  const auto part = [](uint64_t seed) { return all(*split(counting(40), {.seed = seed}).second); };
  EXPECT_EQ(part(1), part(1));
  EXPECT_NE(part(1), part(2));
  EXPECT_ERROR(split(counting(4), {.share = 1.5}), "share 1.5");
  EXPECT_ERROR(split(counting(4), {.groups = {1, 2}}),
               "2 groups, expected one number for each of 4");
}

TEST(Combine, groups_stay_together) {
  SampleGroups groups;
  for (uint64_t i = 0; i < 60; ++i) {
    groups.push_back(i * i % 17);
  }
  const auto groups_in = [&](const Dataset& part) {
    std::set<uint64_t> in;
    for (const int64_t value : all(part)) {
      in.insert(groups[static_cast<size_t>(value)]);
    }
    return in;
  };
  const auto apart = [&](const Split& parts) {
    std::vector<uint64_t> common;
    const auto a = groups_in(*parts.first), b = groups_in(*parts.second);
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
    return common.empty();
  };
  const Split parts = split(counting(60), {.share = 0.3, .groups = groups});
  EXPECT_TRUE(apart(parts));
  EXPECT_NEAR(static_cast<double>(parts.second->size()), 18, 4);
  int64_t total = 0;
  for (int64_t fold = 0; fold < 4; ++fold) {
    const Split folded = k_fold(counting(60), {.folds = 4, .fold = fold, .groups = groups});
    EXPECT_TRUE(apart(folded));
    EXPECT_NEAR(static_cast<double>(folded.second->size()), 15, 4);
    total += folded.second->size();
  }
  EXPECT_EQ(total, 60);
}

TEST(Combine, folds_cover_every_sample_once) {
  std::vector<int64_t> seen;
  for (int64_t fold = 0; fold < 5; ++fold) {
    const Split parts = k_fold(counting(23), {.folds = 5, .fold = fold, .seed = 1});
    EXPECT_EQ(parts.first->size() + parts.second->size(), 23);
    EXPECT_NEAR(static_cast<double>(parts.second->size()), 4.5, .6);
    const std::vector<int64_t> part = all(*parts.second);
    seen.insert(seen.end(), part.begin(), part.end());
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, all(counting(23)));
  EXPECT_ERROR(k_fold(counting(4), {.folds = 5}), "4 samples or groups");
  EXPECT_ERROR(k_fold(counting(4), {.folds = 2, .fold = 2}), "fold 2 of 2");
  EXPECT_ERROR(k_fold(counting(4), {.folds = 1}), "at least 2 folds");
}

TEST(Combine, content_groups_find_duplicates) {
  FakeDataset pictures(600);  // pixels repeat every 256 samples
  pictures.before_get = [](int64_t index) { check(index != 7 && index != 8, "broken"); };
  const SampleGroups groups = content_groups(pictures);
  EXPECT_EQ(groups[3], groups[259]);
  EXPECT_NE(groups[3], groups[4]);
  EXPECT_NE(groups[7], groups[8]);
  const SampleGroups rows = content_groups(
      TensorDataset({{"x", from_values({1, 2, 1, 2, 1, 3}, {3, 2})}, {"y", zeros({3})}}));
  EXPECT_EQ(rows[0], rows[1]);
  EXPECT_NE(rows[0], rows[2]);
}

// A loader keeps its parts alive.
TEST(Combine, temporaries_are_kept) {
  Loader loader(map(subset(counting(6), {1, 3, 5}), [](Sample sample) { return sample; }),
                {.workers = 2, .shuffle = false});
  EXPECT_EQ((*loader.begin())["x"].to_vector<int64_t>(), (std::vector<int64_t>{1, 3, 5}));
  Loader direct(counting(3), {.workers = 1, .shuffle = false});
  EXPECT_EQ((*direct.begin())["x"].to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2}));
}

}  // namespace
}  // namespace binade::data::combine_test
