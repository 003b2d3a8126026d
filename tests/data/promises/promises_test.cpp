// Tests the promises of data/loader.h for every kind of dataset, sampler and collate function: bits
// do not depend on workers and prefetch, an epoch can start at any batch, shards partition an
// epoch, bad samples follow the policy, other data are recognised, devices get the same bits.
#include <algorithm>
#include <set>

#include "tests/data/promises/kinds.h"

namespace binade::data::test::promises_test {
namespace {

class Promises : public ::testing::TestWithParam<Kind> {
 protected:
  Source make(int variant = 0) {
    const fs::path own = folder_.path() / text(count_++);
    fs::create_directories(own);
    Source source = GetParam().make(own, variant);
    source.options.batch = 4;
    source.options.seed = 3;
    source.options.workers = 0;
    return source;
  }

 private:
  TemporaryFolder folder_;
  int count_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Kinds, Promises, ::testing::ValuesIn(all_kinds()),
                         [](const auto& info) { return info.param.name; });

// Sorted indices; with `once`, without those that another shard also has.
std::vector<int64_t> all_indices(const std::vector<Seen>& batches, bool once = false) {
  std::vector<int64_t> all;
  for (const Seen& batch : batches) {
    all.insert(all.end(), batch.indices.begin(), batch.indices.end() - (once ? batch.repeated : 0));
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST_P(Promises, bits_do_not_depend_on_workers_or_prefetch) {
  const Source source = make();
  const auto reference = source.loader(source.options);
  const std::vector<Seen> first = read_epoch(*reference, 0), second = read_epoch(*reference, 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(std::ssize(first), reference->batches_per_epoch());
  EXPECT_EQ(std::ssize(all_indices(first)), reference->samples_per_epoch());
  for (const int workers : {1, 2, 8}) {
    for (const int prefetch : {1, 5}) {
      LoaderOptions options = source.options;
      options.workers = workers;
      options.prefetch = prefetch;
      const auto loader = source.loader(options);
      EXPECT_EQ(read_epoch(*loader, 1), second) << workers << " workers";
      EXPECT_EQ(read_epoch(*loader, 0), first) << workers << " workers";
    }
  }
}

TEST_P(Promises, batches_have_the_fields) {
  const Source source = make();
  const auto loader = source.loader(source.options);
  int64_t first = 0;
  for (const Batch& batch : loader->epoch(0)) {
    EXPECT_EQ(batch.names(), GetParam().fields);
    EXPECT_EQ(batch.first, first);
    EXPECT_EQ(batch.size, std::ssize(batch.indices));
    for (const std::string& name : batch.names()) {
      EXPECT_EQ(batch[name].size(0), batch.size) << name;
    }
    first += batch.size;
  }
  EXPECT_GT(first, 0);
}

TEST_P(Promises, an_epoch_can_be_entered_at_any_batch) {
  const Source source = make();
  for (const int workers : {0, 2}) {
    LoaderOptions options = source.options;
    options.workers = workers;
    options.shard_count = 2;
    options.shard = 1;
    const auto loader = source.loader(options);
    const std::vector<Seen> whole = read_epoch(*loader, 2);
    for (int64_t batch = 0; batch <= std::ssize(whole); ++batch) {
      const std::vector<Seen> rest(whole.begin() + batch, whole.end());
      EXPECT_EQ(read_epoch(*loader, 2, batch), rest) << "from batch " << batch;
    }
  }
}

TEST_P(Promises, shards_deal_out_one_epoch) {
  const Source source = make();
  const auto alone = source.loader(source.options);
  const std::vector<int64_t> whole = all_indices(read_epoch(*alone, 1));
  for (const int64_t shards : {2, 3}) {
    for (const UnevenShards rule : {UnevenShards::keep, UnevenShards::pad, UnevenShards::drop}) {
      std::vector<int64_t> seen, once;
      std::set<int64_t> batches;
      for (int64_t shard = 0; shard < shards; ++shard) {
        LoaderOptions options = source.options;
        options.workers = static_cast<int>(shard);
        options.shard = shard;
        options.shard_count = shards;
        options.uneven_shards = rule;
        const auto loader = source.loader(options);
        const std::vector<Seen> part = read_epoch(*loader, 1);
        EXPECT_EQ(std::ssize(part), loader->batches_per_epoch());
        batches.insert(std::ssize(part));
        const std::vector<int64_t> indices = all_indices(part);
        seen.insert(seen.end(), indices.begin(), indices.end());
        const std::vector<int64_t> own = all_indices(part, true);
        once.insert(once.end(), own.begin(), own.end());
      }
      std::sort(seen.begin(), seen.end());
      std::sort(once.begin(), once.end());
      EXPECT_EQ(once, rule == UnevenShards::drop ? seen : whole);
      const bool contains = std::includes(seen.begin(), seen.end(), whole.begin(), whole.end());
      const bool contained = std::includes(whole.begin(), whole.end(), seen.begin(), seen.end());
      EXPECT_EQ(contains, rule != UnevenShards::drop || seen.size() == whole.size());
      EXPECT_EQ(contained, rule != UnevenShards::pad || seen.size() == whole.size());
      EXPECT_TRUE(rule == UnevenShards::keep || batches.size() == 1);
    }
  }
}

// Throws for some of the samples.
class WithBadSamples : public Decorator {
 public:
  explicit WithBadSamples(std::shared_ptr<const Dataset> inner)
      : Decorator("bad samples", std::move(inner)) {}
  Sample get(int64_t index) const override {
    check(index != 2 && index != 5, "broken sample");
    return inner().get(index);
  }
  std::optional<int64_t> length(int64_t, std::string_view) const override { return std::nullopt; }
  bool in_memory() const override { return false; }
};

TEST_P(Promises, bad_samples_follow_the_policy) {
  const Source good = make();
  if (!good.dataset) {
    GTEST_SKIP() << "rows: iterable_test.cpp";
  }
  Source source = good;
  source.dataset = std::make_shared<WithBadSamples>(good.dataset);
  const std::vector<int64_t> whole = all_indices(read_epoch(*good.loader(good.options), 0));
  const auto bad = [](int64_t index) { return index == 2 || index == 5; };
  const bool draws_bad = std::any_of(whole.begin(), whole.end(), bad);
  EXPECT_EQ(error_of([&] { read_epoch(*source.loader(source.options), 0); }) != "none", draws_bad);
  std::vector<int64_t> left = whole;
  std::erase_if(left, bad);
  for (const BadFilePolicy policy : {BadFilePolicy::skip, BadFilePolicy::replace}) {
    source.options.bad_file = policy;
    const auto reference = source.loader(source.options);
    const std::vector<Seen> expected = read_epoch(*reference, 0);
    const std::vector<int64_t> got = all_indices(expected);
    EXPECT_TRUE(std::includes(got.begin(), got.end(), left.begin(), left.end()));
    EXPECT_TRUE(std::none_of(got.begin(), got.end(), bad));
    EXPECT_EQ(std::ssize(expected), reference->batches_per_epoch());
    if (policy == BadFilePolicy::replace) {
      EXPECT_EQ(got.size(), whole.size());
    }
    EXPECT_EQ(reference->bad_files().empty(), !draws_bad);
    LoaderOptions options = source.options;
    options.workers = 3;
    EXPECT_EQ(read_epoch(*source.loader(options), 0), expected);
  }
}

TEST_P(Promises, other_data_are_recognised) {
  const Source source = make(), same = make(), other = make(1);
  const auto loader = source.loader(source.options);
  EXPECT_EQ(loader->identity(), same.loader(same.options)->identity());
  EXPECT_NE(difference(other.loader(other.options)->identity(), loader->identity()), "");
}

// This test needs a build with the device.
TEST_P(Promises, devices_get_the_same_bits) {
  Device device;
  if (error_of([&] { device = Device::parse("emulated"); }) != "none") {
    GTEST_SKIP() << "no emulated device";
  }
  const Source source = make();
  const std::vector<Seen> expected = read_epoch(*source.loader(source.options), 1);
  LoaderOptions options = source.options;
  options.device = device;
  options.workers = 2;
  const auto loader = source.loader(options);
  for (const Batch& batch : loader->epoch(0)) {
    for (const std::string& name : batch.names()) {
      EXPECT_EQ(batch[name].device(), device) << name;
    }
  }
  EXPECT_EQ(read_epoch(*loader, 1), expected);
}

}  // namespace
}  // namespace binade::data::test::promises_test
