#include <binade/data/loader.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include "tests/data/fake_dataset.h"
#include "tests/data/image_stream.h"
#include "tests/data/test_files.h"

namespace binade::data::loader_test {
namespace {

using test::FakeDataset;
using test::read_stream;
using test::Stream;

LoaderOptions augmenting(int workers) {
  LoaderOptions options{.batch = 7, .workers = workers, .seed = 11};
  options.transform = sequence({random_crop(4, 4, 2), random_horizontal_flip()});
  options.mean = {.1f, .2f, .3f};
  options.deviation = {.5f, .6f, .7f};
  return options;
}

TEST(Loader, batch_layout_and_values) {
  const FakeDataset dataset(10, 4, 3);
  Loader loader(dataset, {.batch = 4,
                          .workers = 0,
                          .shuffle = false,
                          .mean = {.5f, .5f, .5f},
                          .deviation = {.25f, .25f, .25f}});
  EXPECT_EQ(loader.batches_per_epoch(), 3);
  loader.epoch(0);
  Batch batch;
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.images.sizes(), (Dims{4, 3, 4, 4}));
  EXPECT_EQ(batch.images.strides(), (Dims{48, 1, 12, 3}));
  EXPECT_EQ(batch.labels.sizes(), (Dims{4}));
  EXPECT_EQ(batch.size, 4);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(batch.labels.data<int64_t>()[i], i);
    const float expected = (static_cast<float>(uint8_t(7 * i)) / 255 - .5f) / .25f;
    EXPECT_NEAR(batch.images.data<float>()[48 * i], expected, 1e-5);
  }
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.first, 4);
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.size, 2);
  EXPECT_FALSE(loader.next(batch));
  EXPECT_ERROR(loader.next(batch), "no epoch");
}

TEST(Loader, stream_does_not_depend_on_workers_or_prefetch) {
  const FakeDataset dataset(50);
  Loader reference(dataset, augmenting(0));
  const Stream first = read_stream(reference, 0), second = read_stream(reference, 1);
  EXPECT_NE(first.indices, second.indices);
  EXPECT_NE(first.pixels, second.pixels);
  for (int workers : {1, 2, 8}) {
    for (int prefetch : {1, 4, 9}) {
      LoaderOptions options = augmenting(workers);
      options.prefetch = prefetch;
      options.cache_bytes = prefetch == 4 ? 0 : 1000;
      Loader loader(dataset, options);
      EXPECT_EQ(read_stream(loader, 1), second) << workers << " workers";
      EXPECT_EQ(read_stream(loader, 0), first) << workers << " workers";
    }
  }
}

TEST(Loader, every_sample_once_per_epoch) {
  const FakeDataset dataset(101);
  Loader loader(dataset, {.batch = 8, .workers = 2, .seed = 3});
  Stream stream = read_stream(loader, 5);
  std::vector<int64_t> sorted = stream.indices, all(101);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
  EXPECT_NE(stream.indices, all);
}

TEST(Loader, an_epoch_can_start_at_any_batch) {
  const FakeDataset dataset(40);
  for (int workers : {0, 2}) {
    Loader loader(dataset, augmenting(workers));
    const Stream whole = read_stream(loader, 3);
    for (int64_t batch = 0; batch <= loader.batches_per_epoch(); ++batch) {
      const Stream rest = read_stream(loader, 3, batch);
      const auto skipped = std::min<ptrdiff_t>(7 * batch, 40);
      EXPECT_TRUE(std::equal(rest.indices.begin(), rest.indices.end(),
                             whole.indices.begin() + skipped, whole.indices.end()));
      EXPECT_TRUE(std::equal(rest.pixels.begin(), rest.pixels.end(),
                             whole.pixels.begin() + 48 * skipped, whole.pixels.end()));
    }
    EXPECT_ERROR(loader.epoch(3, 7), "first batch 7");
    EXPECT_ERROR(loader.epoch(-1), "epoch -1");
  }
}

TEST(Loader, an_epoch_may_be_abandoned) {
  const FakeDataset dataset(60);
  Loader loader(dataset, augmenting(2)), reference(dataset, augmenting(0));
  const Stream expected = read_stream(reference, 9);
  for (int i = 0; i < 20; ++i) {
    loader.epoch(i);
    Batch batch;
    for (int k = 0; k < i % 4; ++k) {
      ASSERT_TRUE(loader.next(batch));
    }
  }
  EXPECT_EQ(read_stream(loader, 9), expected);
}

// A worker finishes a batch of the old epoch while next() waits for a batch of the new one.
TEST(Loader, a_batch_of_an_abandoned_epoch_is_not_delivered) {
  FakeDataset dataset(64), same(64);
  std::atomic<int> reads = 0, allowed = 0;
  dataset.before_get = [&](int64_t) {
    for (const int read = reads++; read >= allowed;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  const LoaderOptions options{.batch = 8, .workers = 1};
  Loader loader(dataset, options), reference(same, options);
  loader.epoch(0);
  while (reads == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    allowed = 1;  // the abandoned batch
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    allowed = 1000;
  });
  EXPECT_EQ(read_stream(loader, 1), read_stream(reference, 1));
}

TEST(Loader, drop_last_and_shards) {
  const FakeDataset dataset(23);
  Loader dropping(dataset, {.batch = 5, .workers = 0, .drop_last = true});
  EXPECT_EQ(read_stream(dropping, 0).sizes, (std::vector<int64_t>{5, 5, 5, 5}));
  std::multiset<int64_t> seen;
  for (int64_t shard = 0; shard < 3; ++shard) {
    Loader loader(dataset, {.batch = 3, .workers = 1, .shard = shard, .shard_count = 3});
    const Stream stream = read_stream(loader, 1);
    EXPECT_EQ(stream.indices.size(), 8u);  // equal on all shards: one sample is repeated
    seen.insert(stream.indices.begin(), stream.indices.end());
  }
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 23u);
  seen.clear();
  for (int64_t shard = 0; shard < 3; ++shard) {
    Loader loader(dataset, {.batch = 3,
                            .workers = 1,
                            .shard = shard,
                            .shard_count = 3,
                            .uneven_shards = UnevenShards::drop});
    EXPECT_EQ(loader.samples_per_epoch(), 7);
    const Stream stream = read_stream(loader, 1);
    seen.insert(stream.indices.begin(), stream.indices.end());
  }
  EXPECT_EQ(seen.size(), 21u);  // two are left out, none is repeated
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 21u);
}

TEST(Loader, shards_of_other_sizes_have_every_sample_once) {
  for (const int64_t size : {2, 7, 24}) {
    const FakeDataset dataset(size);
    std::vector<int64_t> seen;
    for (int64_t shard = 0; shard < 5; ++shard) {
      Loader loader(dataset, {.batch = 2,
                              .workers = static_cast<int>(shard % 2),
                              .shard = shard,
                              .shard_count = 5,
                              .uneven_shards = UnevenShards::keep});
      EXPECT_EQ(loader.samples_per_epoch(), size / 5 + (shard < size % 5));  // may be 0
      const Stream stream = read_stream(loader, 1);
      seen.insert(seen.end(), stream.indices.begin(), stream.indices.end());
    }
    std::sort(seen.begin(), seen.end());
    for (int64_t i = 0; i < size; ++i) {
      EXPECT_EQ(seen.at(static_cast<size_t>(i)), i);
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
  }
}

// Augmentation depends only on the seed, the epoch and the sample.
TEST(Loader, augmentation_draws_from_the_stream_of_the_epoch) {
  const FakeDataset dataset(6);
  LoaderOptions options{.batch = 3, .workers = 2, .seed = 9, .shuffle = false};
  options.transform = [](Image& image, philox::Stream& random) {
    std::fill(image.pixels.begin(), image.pixels.end(), static_cast<uint8_t>(random.next()));
  };
  Loader loader(dataset, options);
  for (const int64_t epoch : {0, 1, 7}) {
    const Stream stream = read_stream(loader, epoch);
    for (int64_t index = 0; index < 6; ++index) {
      philox::Stream random = sample_stream(9, epoch, index).part(0);  // for the first step
      EXPECT_FLOAT_EQ(stream.pixels[static_cast<size_t>(index * 48)],
                      static_cast<float>(static_cast<uint8_t>(random.next())) / 255)
          << "epoch " << epoch << " sample " << index;
    }
  }
}

TEST(Loader, mixed_sizes_are_an_error_with_advice) {
  FakeDataset dataset(8);
  LoaderOptions options{.batch = 2, .workers = 2, .shuffle = false};
  options.transform = [](Image& image, philox::Stream&) {
    if (image.pixels[0] == uint8_t(7 * 5)) {
      image = make_image(9, 9, 3);
    }
  };
  Loader loader(dataset, options);
  loader.epoch(0);
  Batch batch;
  EXPECT_TRUE(loader.next(batch));
  EXPECT_TRUE(loader.next(batch));
  EXPECT_ERROR(loader.next(batch), "set an image size");
  options.batch = 1;
  Loader single(dataset, options);
  EXPECT_ERROR(read_stream(single, 0), "set an image size");
}

TEST(Loader, bad_options_are_errors) {
  const FakeDataset dataset(8), none(0);
  EXPECT_ERROR(Loader(dataset, {.batch = 0}), "batch 0");
  EXPECT_ERROR(Loader(dataset, {.workers = -2}), "workers -2");
  EXPECT_ERROR(Loader(dataset, {.prefetch = 0}), "prefetch 0");
  EXPECT_ERROR(Loader(dataset, {.mean = {1.0f}}), "1 means, expected 3");
  EXPECT_ERROR(Loader(dataset, {.deviation = {1.0f, 0.0f, 1.0f}}), "deviation > 0");
  EXPECT_ERROR(Loader(dataset, {.batch = 9, .drop_last = true}), "no full batch");
  EXPECT_ERROR(Loader(dataset, {.shard = 2, .shard_count = 2}), "shard 2 of 2");
  EXPECT_ERROR(Loader(dataset, {.timeout_seconds = 0}), "timeout_seconds");
  EXPECT_ERROR(Loader(none, {}), "empty");
  EXPECT_ERROR(Loader(std::shared_ptr<const Dataset>(), {}), "no dataset");
}

TEST(Loader, destroying_it_at_any_moment_ends) {
  FakeDataset dataset(200);
  dataset.before_get = [](int64_t index) {
    if (index % 50 == 49) {
      fail("broken");
    }
    std::this_thread::yield();
  };
  const auto start = std::chrono::steady_clock::now();
  philox::Stream random(1, 2);
  for (int round = 0; round < 300; ++round) {
    Loader loader(dataset, {.batch = 5,
                            .workers = 1 + round % 4,
                            .seed = uint64_t(round),
                            .prefetch = 1 + round % 3,
                            .bad_file = round % 2 == 0 ? BadFilePolicy::fail : BadFilePolicy::skip,
                            .cache_bytes = 0});
    if (round % 5 != 0) {
      loader.epoch(0);
    }
    Batch batch;
    try {
      for (uint32_t k = random.next_below(6); k > 0 && round % 5 != 0; --k) {
        loader.next(batch);
      }
    } catch (const Error&) {
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.next_below(300)));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(Loader, a_stuck_reader_gives_an_error_with_its_file) {
  std::atomic<bool> release = false, left = false;
  {
    auto dataset = std::make_shared<FakeDataset>(12);
    dataset->before_get = [&](int64_t index) {
      while (index == 6 && !release) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      left = left || index == 6;
    };
    const auto start = std::chrono::steady_clock::now();
    Loader loader(dataset, {.batch = 4, .workers = 2, .shuffle = false, .timeout_seconds = 0.3});
    loader.epoch(0);
    Batch batch;
    EXPECT_TRUE(loader.next(batch));
    EXPECT_ERROR(loader.next(batch), "sample 6 (fake/6.png)");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  }
  // The loader is gone; the worker that it abandoned must still end safely.
  release = true;
  for (int i = 0; i < 1000 && !left; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_TRUE(left);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

TEST(Loader, statistics) {
  const FakeDataset dataset(64);
  Loader loader(dataset, augmenting(2));
  read_stream(loader, 0);
  const LoaderStats stats = loader.stats();
  EXPECT_EQ(stats.samples, 64);
  EXPECT_EQ(stats.batches, 10);
  EXPECT_EQ(stats.workers, 2);
  EXPECT_GT(stats.total_seconds, 0);
  EXPECT_TRUE(test::contains(to_string(stats), "64 samples in 10 batches, 2 workers"));
}

}  // namespace
}  // namespace binade::data::loader_test
