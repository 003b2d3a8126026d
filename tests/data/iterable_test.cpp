// Tests datasets of consecutive rows, distributed over shards and workers.
#include <binade/data/loader.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include "tests/data/fake_rows.h"
#include "tests/data/row_stream.h"
#include "tests/data/test_files.h"

namespace binade::data::iterable_test {
namespace {

using test::FakeRows;
using test::read_rows;
using test::RowStream;

std::vector<int64_t> sorted(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<int64_t> all_rows(int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

TEST(Iterable, ABatchHasRowsOfNumbers) {
  const FakeRows rows(5);
  Loader loader(rows, {.batch = 3, .workers = 0, .shuffle = false});
  EXPECT_EQ(loader.batches_per_epoch(), -1);
  EXPECT_EQ(loader.samples_per_epoch(), -1);
  loader.epoch(0);
  Batch batch;
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.images.sizes(), (Dims{3, 2}));
  EXPECT_EQ(batch.images.at(5), 4);
  EXPECT_EQ(batch.labels.at(2), 2);
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.first, 3);
  EXPECT_EQ(batch.indices, (std::vector<int64_t>{3, 4}));
  EXPECT_FALSE(loader.next(batch));
  EXPECT_ERROR(loader.next(batch), "no epoch");
}

// Tests which rows each of 1, 2 and 3 shards gets, with 0, 1 and 3 workers.
class IterableShards : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  RowStream read(const FakeRows& rows, int64_t shard, UnevenShards rule, int64_t epoch = 1,
                 int64_t batch = 4) const {
    const auto& [shards, workers] = GetParam();
    Loader loader(rows, {.batch = batch,
                         .workers = workers,
                         .seed = 5,
                         .shuffle_buffer = 8,
                         .shard = shard,
                         .shard_count = shards,
                         .uneven_shards = rule});
    return read_rows(loader, epoch);
  }
};
INSTANTIATE_TEST_SUITE_P(Counts, IterableShards,
                         ::testing::Combine(::testing::Values(1, 2, 3),
                                            ::testing::Values(0, 1, 3)));

TEST_P(IterableShards, HaveEveryRowOnce) {
  const int shards = std::get<0>(GetParam());
  for (const int64_t count : {1, 2, 7, 24, 50}) {
    SCOPED_TRACE(count);
    const FakeRows rows(count);
    std::vector<int64_t> seen;
    for (int64_t shard = 0; shard < shards; ++shard) {
      const RowStream stream = read(rows, shard, UnevenShards::keep);
      const auto expected = static_cast<size_t>(count / shards + (shard < count % shards));
      EXPECT_EQ(stream.indices.size(), expected);
      for (size_t i = 0; i < stream.indices.size(); ++i) {
        EXPECT_EQ(stream.values[2 * i + 1], 2 * static_cast<float>(stream.indices[i]));
        EXPECT_EQ(stream.labels[i], stream.indices[i] % 10);
      }
      seen.insert(seen.end(), stream.indices.begin(), stream.indices.end());
    }
    EXPECT_EQ(sorted(seen), all_rows(count));
  }
}

TEST_P(IterableShards, PadOrDropToOneLength) {
  const int shards = std::get<0>(GetParam());
  for (const int64_t count : {1, 7, 24, 50}) {
    SCOPED_TRACE(count);
    const FakeRows rows(count);
    std::multiset<int64_t> padded, dropped;
    std::vector<int64_t> first;  // first rows in the order
    for (int64_t shard = 0; shard < shards; ++shard) {
      const RowStream pad = read(rows, shard, UnevenShards::pad);
      EXPECT_EQ(pad.indices.size(), static_cast<size_t>((count + shards - 1) / shards));
      padded.insert(pad.indices.begin(), pad.indices.end());
      first.push_back(pad.indices[0]);
      if (count >= shards) {
        const RowStream drop = read(rows, shard, UnevenShards::drop);
        EXPECT_EQ(drop.indices.size(), static_cast<size_t>(count / shards));
        dropped.insert(drop.indices.begin(), drop.indices.end());
      }
    }
    const auto once = [&](const std::multiset<int64_t>& rows_of) {
      return std::set<int64_t>(rows_of.begin(), rows_of.end()).size();
    };
    EXPECT_EQ(once(padded), static_cast<size_t>(count));
    // The first rows of the order are repeated as padding, one each.
    for (int64_t extra = 0; count >= shards && extra < shards; ++extra) {
      const bool twice = extra < (shards - count % shards) % shards;
      EXPECT_EQ(padded.count(first[static_cast<size_t>(extra)]), twice ? 2u : 1u) << extra;
    }
    EXPECT_EQ(once(dropped), dropped.size());
    EXPECT_EQ(dropped.size(), static_cast<size_t>(count / shards * shards));
  }
}

// Distributes the rows of one worker and one shard.
TEST_P(IterableShards, DealOutOneOrder) {
  const int shards = std::get<0>(GetParam());
  const FakeRows rows(48);
  Loader alone(rows, {.batch = 5, .workers = 0, .seed = 5, .shuffle_buffer = 8});
  const RowStream whole = read_rows(alone, 1);
  for (int64_t shard = 0; shard < shards; ++shard) {
    const RowStream part = read(rows, shard, UnevenShards::pad);
    for (size_t i = 0; i < part.indices.size(); ++i) {
      EXPECT_EQ(part.indices[i],
                whole.indices[i * static_cast<size_t>(shards) + static_cast<size_t>(shard)]);
    }
  }
}

TEST_P(IterableShards, AnEpochCanBeEnteredAtAnyBatch) {
  const auto& [shards, workers] = GetParam();
  std::atomic<int> decoded = 0;
  FakeRows counting(41);
  counting.before_decode = [&](int64_t) { ++decoded; };
  Loader loader(counting, {.batch = 3,
                           .workers = workers,
                           .seed = 2,
                           .shuffle_buffer = 6,
                           .shard = shards - 1,
                           .shard_count = shards});
  const RowStream whole = read_rows(loader, 3);
  const auto batches = static_cast<int64_t>(whole.sizes.size());
  for (int64_t batch = 0; batch <= batches; ++batch) {
    decoded = 0;
    const RowStream rest = read_rows(loader, 3, batch);
    const auto skipped = static_cast<size_t>(
        std::min<int64_t>(3 * batch, static_cast<int64_t>(whole.indices.size())));
    EXPECT_TRUE(std::equal(rest.indices.begin(), rest.indices.end(),
                           whole.indices.begin() + static_cast<std::ptrdiff_t>(skipped),
                           whole.indices.end()));
    EXPECT_EQ(rest.indices.size() + skipped, whole.indices.size());
    EXPECT_EQ(decoded, static_cast<int>(rest.indices.size()));
  }
  EXPECT_ERROR(read_rows(loader, 3, batches + 1), "got first batch");
}

// Stops a training and resumes it with another number of ranks: they see the unseen rows.
TEST(Iterable, ResumeOnAnotherNumberOfShardsSeesEveryRowOnce) {
  const FakeRows rows(70);
  for (const int64_t stopped_after : {0, 1, 3}) {
    std::vector<int64_t> seen;
    const auto take = [&](int64_t shards, int64_t first, int64_t last) {
      for (int64_t shard = 0; shard < shards; ++shard) {
        Loader loader(rows, {.batch = 12 / shards,
                             .workers = static_cast<int>(shard),
                             .shuffle_buffer = 16,
                             .shard = shard,
                             .shard_count = shards,
                             .uneven_shards = UnevenShards::keep});
        loader.epoch(2, first);
        Batch batch;
        for (int64_t b = first; b < last && loader.next(batch); ++b) {
          seen.insert(seen.end(), batch.indices.begin(), batch.indices.end());
        }
      }
    };
    take(3, 0, stopped_after);
    take(2, stopped_after, stopped_after + 1);
    take(4, stopped_after + 1, stopped_after + 2);
    take(1, stopped_after + 2, 100);
    EXPECT_EQ(sorted(seen), all_rows(70)) << stopped_after;
  }
}

TEST(Iterable, BatchesDoNotDependOnWorkersOrPrefetch) {
  const FakeRows rows(50);
  const auto make = [&](int workers, int prefetch) {
    return std::make_unique<Loader>(
        rows,
        LoaderOptions{
            .batch = 7, .workers = workers, .seed = 3, .shuffle_buffer = 20, .prefetch = prefetch});
  };
  const RowStream first = read_rows(*make(0, 1), 0), second = read_rows(*make(0, 1), 1);
  EXPECT_NE(first.indices, second.indices);
  for (const int workers : {1, 2, 8}) {
    for (const int prefetch : {1, 4, 9}) {
      const auto loader = make(workers, prefetch);
      EXPECT_EQ(read_rows(*loader, 1), second) << workers << " workers";
      EXPECT_EQ(read_rows(*loader, 0), first) << workers << " workers";
    }
  }
}

TEST(Iterable, ShufflesWithinABuffer) {
  const FakeRows rows(200);
  const auto order = [&](int64_t buffer, uint64_t seed) {
    Loader loader(rows, {.batch = 16, .workers = 2, .seed = seed, .shuffle_buffer = buffer});
    return read_rows(loader, 0).indices;
  };
  EXPECT_EQ(order(1, 0), all_rows(200));
  EXPECT_NE(order(32, 0), order(32, 1));
  const std::vector<int64_t> near = order(32, 0), whole = order(1000, 0);
  for (size_t place = 0; place < near.size(); ++place) {
    EXPECT_LT(near[place], static_cast<int64_t>(place) + 32);  // no row comes before it is read
  }
  EXPECT_EQ(sorted(near), all_rows(200));
  EXPECT_EQ(sorted(whole), all_rows(200));
  // With a buffer for all rows every position is equally likely, so the first row is rarely among
  // the first.
  int64_t sum = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<int64_t> rows_of = order(200, seed);
    sum += std::find(rows_of.begin(), rows_of.end(), 0) - rows_of.begin();
  }
  EXPECT_NEAR(static_cast<double>(sum) / 40, 100, 40);  // four deviations of the mean of 40
}

TEST(Iterable, ErrorsOfTheReaderEndTheEpoch) {
  for (const int workers : {0, 1, 3}) {
    for (const BadFilePolicy policy : {BadFilePolicy::fail, BadFilePolicy::skip}) {
      FakeRows rows(20);
      rows.before_read = [](int64_t index) { check(index != 9, "the pipe broke"); };
      Loader loader(rows, {.batch = 4, .workers = workers, .shuffle = false, .bad_file = policy});
      loader.epoch(0);
      Batch batch;
      EXPECT_TRUE(loader.next(batch));
      EXPECT_TRUE(loader.next(batch));
      EXPECT_ERROR(loader.next(batch), "the pipe broke");
      EXPECT_ERROR(loader.next(batch), "earlier error");
    }
  }
}

TEST(Iterable, RowsThatHoldNoSample) {
  FakeRows rows(12);
  rows.before_decode = [](int64_t index) { check(index != 2 && index != 3 && index != 7, "torn"); };
  for (const int workers : {0, 1, 3}) {
    const auto options = [&](BadFilePolicy policy) {
      return LoaderOptions{.batch = 4, .workers = workers, .shuffle = false, .bad_file = policy};
    };
    Loader failing(rows, options(BadFilePolicy::fail));
    EXPECT_ERROR(read_rows(failing, 0), "sample 2 (fake:2): torn");
    Loader replacing(rows, options(BadFilePolicy::replace));
    EXPECT_EQ(read_rows(replacing, 0).indices,
              (std::vector<int64_t>{0, 1, 0, 0, 4, 5, 6, 4, 8, 9, 10, 11}));
    Loader skipping(rows, options(BadFilePolicy::skip));
    EXPECT_EQ(read_rows(skipping, 0).sizes, (std::vector<int64_t>{2, 3, 4}));
    ASSERT_EQ(skipping.bad_files().size(), 3u);
    EXPECT_EQ(skipping.bad_files()[1].path, "fake:3");
  }
  FakeRows hopeless(4);
  hopeless.before_decode = [](int64_t) { fail("torn"); };
  Loader loader(hopeless, {.batch = 2, .workers = 2, .bad_file = BadFilePolicy::skip});
  EXPECT_ERROR(read_rows(loader, 0), "no readable row in the batch");
}

TEST(Iterable, DropLastLeavesOutABatchThatIsNotFull) {
  const FakeRows rows(11);
  for (const int workers : {0, 2}) {
    Loader loader(rows, {.batch = 4, .workers = workers, .drop_last = true});
    EXPECT_EQ(read_rows(loader, 0).sizes, (std::vector<int64_t>{4, 4}));
  }
}

TEST(Iterable, SizesThatAreSaid) {
  FakeRows rows(11);
  rows.said_size = 11;
  Loader loader(rows, {.batch = 4, .workers = 2, .shard = 1, .shard_count = 2});
  EXPECT_EQ(loader.batches_per_epoch(), 2);
  EXPECT_EQ(loader.samples_per_epoch(), 6);
  EXPECT_EQ(read_rows(loader, 0).sizes, (std::vector<int64_t>{4, 2}));
  EXPECT_ERROR(loader.epoch(0, 3), "first batch 3, expected at most 2");
  rows.said_size = 12;
  EXPECT_ERROR(read_rows(loader, 0), "has 11 rows, but its size() is 12");
}

TEST(Iterable, BadOptionsAreErrors) {
  const FakeRows rows(3), none(0);
  EXPECT_ERROR(Loader(rows, {.batch = 0}), "batch 0");
  EXPECT_ERROR(Loader(rows, {.shuffle_buffer = 0}), "shuffle_buffer 0");
  EXPECT_ERROR(Loader(rows, {.mean = {1}}), "for rows of numbers");
  EXPECT_ERROR(Loader(rows, {.shard = 2, .shard_count = 2}), "shard 2 of 2");
  EXPECT_ERROR(Loader(std::shared_ptr<const IterableDataset>(), {}), "no dataset");
  for (const int workers : {0, 2}) {
    Loader empty(none, {.workers = workers});
    EXPECT_ERROR(read_rows(empty, 0), "the dataset is empty");
    Loader small(rows, {.batch = 4, .workers = workers, .drop_last = true});
    EXPECT_ERROR(read_rows(small, 0), "no full batch of 4");
    Loader dropped(
        rows,
        {.workers = workers, .shard = 3, .shard_count = 4, .uneven_shards = UnevenShards::drop});
    EXPECT_ERROR(read_rows(dropped, 0), "3 rows in 4 shards");
  }
}

TEST(Iterable, LeavingAtAnyMomentEnds) {
  FakeRows rows(100);
  rows.before_read = [](int64_t) { std::this_thread::yield(); };
  philox::Stream random(1, 3);
  Loader kept(rows, {.batch = 5, .workers = 3, .shuffle = false});
  for (int round = 0; round < 100; ++round) {
    Loader loader(rows, {.batch = 5, .workers = 1 + round % 4, .prefetch = 1 + round % 3});
    loader.epoch(0);
    kept.epoch(round);
    Batch batch;
    for (uint32_t k = random.next_below(4); k > 0; --k) {
      ASSERT_TRUE(loader.next(batch));
      ASSERT_TRUE(kept.next(batch));
    }
  }
  EXPECT_EQ(read_rows(kept, 0).indices, all_rows(100));
}

TEST(Iterable, AStuckReaderGivesAnErrorWithItsRow) {
  auto rows = std::make_shared<FakeRows>(20);
  std::atomic<bool> release = false;
  rows->before_read = [&](int64_t index) {
    while (index == 9 && !release) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  };
  {
    Loader loader(rows, {.batch = 4, .workers = 2, .shuffle = false, .timeout_seconds = 0.3});
    loader.epoch(0);
    Batch batch;
    EXPECT_TRUE(loader.next(batch));
    EXPECT_TRUE(loader.next(batch));
    EXPECT_ERROR(loader.next(batch), "a worker has been at sample");
    release = true;
  }
}

// Rows may hold images, which are augmented according to their number.
class PictureRows : public FakeRows {
 public:
  using FakeRows::FakeRows;
  Sample decode(const std::string&, int64_t index) const override {
    Sample sample{make_image(6, 6, 1), index};
    std::iota(sample.image.pixels.begin(), sample.image.pixels.end(), static_cast<uint8_t>(index));
    return sample;
  }
  int channels() const override { return 1; }
};

TEST(Iterable, RowsOfImages) {
  const PictureRows rows(21);
  const auto stream = [&](int workers) {
    LoaderOptions options{.batch = 4, .workers = workers, .seed = 9, .mean = {0.5f}};
    options.transform = random_crop(4, 4, 2);
    Loader loader(rows, options);
    Batch batch;
    loader.epoch(0);
    EXPECT_TRUE(loader.next(batch));
    EXPECT_EQ(batch.images.sizes(), (Dims{4, 1, 4, 4}));
    return read_rows(loader, 2);
  };
  const RowStream expected = stream(0);
  EXPECT_EQ(expected.values.size(), 21u * 16);
  EXPECT_EQ(stream(3), expected);
}

}  // namespace
}  // namespace binade::data::iterable_test
