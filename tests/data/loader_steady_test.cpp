// Tests a loader in its steady state: its allocations, threads shared by several loaders,
// read-ahead of files, and ending at any moment.
#include <binade/data/encode.h>
#include <binade/data/image_folder.h>
#include <binade/data/loader.h>
#include <binade/data/store/pack.h>
#include <binade/data/store/store_dataset.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "tests/data/fake_dataset.h"
#include "tests/data/image_stream.h"
#include "tests/data/test_files.h"

namespace {

// While it is on, counts the program's allocations with new.
std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0}, largest{0};

void note(size_t bytes) {
  if (counting) {
    ++allocations;
    int64_t before = largest;
    const auto size = static_cast<int64_t>(bytes);
    while (size > before && !largest.compare_exchange_weak(before, size)) {
    }
  }
}

}  // namespace

void* operator new(size_t bytes) {
  note(bytes);
  if (void* block = std::malloc(bytes == 0 ? 1 : bytes)) {
    return block;
  }
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }

namespace binade::data::loader_steady_test {
namespace {

using test::FakeDataset;
using test::read_stream;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A worker allocates for its first batches, whenever they come. So about 16 batches in a row
// allocate at most `most` blocks, and nothing from the system.
void expect_no_allocations(const StoreDataset& store, const LoaderOptions& options, int64_t most) {
  Loader loader(store, options);
  Batch batch;
  int64_t blocks = 0, system = 0;
  for (int epoch = 0; epoch < 100; ++epoch) {
    loader.epoch(epoch);
    for (int i = 0; i < 8; ++i) {
      ASSERT_TRUE(loader.next(batch));
    }
    [[maybe_unused]] const int64_t before = memory_stats().system_allocations;
    allocations = largest = 0;
    counting = true;
    for (int i = 0; i < 16; ++i) {
      ASSERT_TRUE(loader.next(batch));
    }
    counting = false;
    blocks = allocations;
#ifndef BINADE_PLAIN_MALLOC  // with it, every tensor comes from malloc
    system = memory_stats().system_allocations - before;
#endif
    if (epoch > 0 && blocks <= most && system == 0) {
      return;
    }
  }
  ADD_FAILURE() << options.workers << " workers took " << blocks << " blocks, the largest of "
                << largest << " bytes, and " << system << " from the system";
}

TEST(LoaderSteady, AllocatesNothingForBatchesOfAStore) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() / "store";
  pack(FakeDataset(64 * 8, 16), path, {.images = PackImages::raw});
  const StoreDataset store(path);
  for (const int workers : {0, 2}) {
    LoaderOptions options{.batch = 8, .workers = workers, .mean = {.5f, .5f, .5f}};
    expect_no_allocations(store, options, 0);
    options.transform = random_crop(12, 12);  // one crop plan per sample
    expect_no_allocations(store, options, 8 * (16 + 8));
  }
}

TEST(LoaderSteady, SharedThreadsGiveTheSameBatches) {
  const FakeDataset dataset(60), other(45, 5);
  LoaderOptions options{.batch = 7, .workers = 0, .seed = 4};
  Loader first_reference(dataset, options), second_reference(other, options);
  options.workers = -1;
  options.pool = std::make_shared<WorkerPool>(2);
  Loader first(dataset, options);
  {
    Loader second(other, options);
    EXPECT_EQ(second.stats().workers, 2);
    for (int epoch = 0; epoch < 3; ++epoch) {
      Loader::Iterator a = first.epoch(epoch).begin(), b = second.epoch(epoch).begin();
      std::vector<int64_t> indices, more;
      while (a != std::default_sentinel || b != std::default_sentinel) {  // by turns
        if (a != std::default_sentinel) {
          indices.insert(indices.end(), a->indices.begin(), a->indices.end());
          ++a;
        }
        if (b != std::default_sentinel) {
          more.insert(more.end(), b->indices.begin(), b->indices.end());
          ++b;
        }
      }
      EXPECT_EQ(indices, read_stream(first_reference, epoch).indices);
      EXPECT_EQ(more, read_stream(second_reference, epoch).indices);
    }
  }
  options.pool.reset();
  EXPECT_EQ(read_stream(first, 5), read_stream(first_reference, 5));
  EXPECT_ERROR(WorkerPool(0), "got 0 threads");
  EXPECT_ERROR(Loader(dataset, {.workers = 2, .pool = std::make_shared<WorkerPool>(1)}),
               "got a pool and workers 2");
}

// If a sample never arrives in one loader, another loader keeps its threads.
TEST(LoaderSteady, AStuckLoaderLeavesTheSharedThreads) {
  const auto release = std::make_shared<std::atomic<bool>>(false);
  const auto stuck = std::make_shared<FakeDataset>(8);
  stuck->before_get = [release](int64_t) {
    while (!*release) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  const auto pool = std::make_shared<WorkerPool>(1);
  const FakeDataset dataset(20);
  Loader other(dataset, {.batch = 4, .pool = pool});
  {
    Loader loader(stuck, {.batch = 4, .pool = pool, .timeout_seconds = 0.1});
    loader.epoch(0);
    Batch batch;
    EXPECT_ERROR(loader.next(batch), "a worker has been at sample");
  }
  Loader reference(dataset, {.batch = 4, .workers = 0});
  EXPECT_EQ(read_stream(other, 0), read_stream(reference, 0));
  *release = true;
}

// next() throws whatever exception a worker throws.
TEST(LoaderSteady, WhatAWorkerThrowsIsAnErrorOfNext) {
  for (const int workers : {0, 1, 3}) {
    FakeDataset dataset(12);
    dataset.before_get = [](int64_t index) {
      if (index == 7) {
        throw 42;  // NOLINT
      }
    };
    Loader loader(dataset, {.batch = 3, .workers = workers});
    EXPECT_ERROR(read_stream(loader, 0), "sample 7 (fake/7.png): unknown exception");
    EXPECT_ERROR(loader.epoch(1), "stopped by an earlier error");
  }
}

class ManyFiles : public ::testing::Test {
 protected:
  ManyFiles() {
    for (int i = 0; i < 90; ++i) {
      test::write_file(folder_.path() / (i % 2 == 0 ? "a" : "b") / (std::to_string(i) + ".png"),
                       encode_png(test::picture(5, 5, 3, static_cast<uint64_t>(i))));
    }
  }
  test::TemporaryFolder folder_;
};

// A dataset with slow files, as on a network.
class SlowFolder : public Subset {
 public:
  SlowFolder(const std::shared_ptr<const Dataset>& inner, std::vector<int64_t> all,
             std::chrono::milliseconds latency)
      : Subset(inner, std::move(all)), latency_(latency) {}
  Sample get_for(int64_t index, ImageRequest& request) const override {
    std::this_thread::sleep_for(latency_);
    return Subset::get_for(index, request);
  }
  void read(int64_t index, ImageRequest& request, Sample& sample) const override {
    std::this_thread::sleep_for(latency_);
    Subset::read(index, request, sample);
  }
  std::optional<std::vector<uint8_t>> encoded(int64_t index) const override {
    std::this_thread::sleep_for(latency_);
    return Subset::encoded(index);
  }

 private:
  std::chrono::milliseconds latency_;
};

TEST_F(ManyFiles, ReadingAheadHidesTheLatencyOfStorage) {
  const auto folder = std::make_shared<ImageFolder>(folder_.path(), Part::train,
                                                    ImageFolderOptions{.test_share = 1e-9});
  std::vector<int64_t> all(90);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<int64_t>(i);
  }
  const SlowFolder slow(folder, all, std::chrono::milliseconds(4));
  LoaderOptions options{
      .batch = 8, .workers = 0, .seed = 1, .transform = random_crop(4, 4), .cache_bytes = 0};
  Loader reference(*folder, options);
  const test::Stream expected = read_stream(reference, 1);
  const auto start = Clock::now();
  Loader waiting(slow, options);
  EXPECT_EQ(read_stream(waiting, 1), expected);
  const double without = seconds_since(start);  // at least 90 times the latency
  options.read_ahead = 16;
  for (const int workers : {0, 1, 2, 8}) {
    options.workers = workers;
    Loader loader(slow, options);
    const auto begin = Clock::now();
    EXPECT_EQ(read_stream(loader, 1), expected) << workers;
    RecordProperty(text("share of the time, ", workers, " workers"),
                   text(seconds_since(begin) / without));
    for (int64_t batch = 0; batch < loader.batches_per_epoch(); ++batch) {
      const test::Stream rest = read_stream(loader, 1, batch);
      EXPECT_TRUE(std::equal(rest.indices.begin(), rest.indices.end(),
                             expected.indices.begin() + 8 * batch, expected.indices.end()));
    }
  }
  options.bad_file = BadFilePolicy::replace;
  std::filesystem::resize_file(folder->describe(3), 20);
  Loader patient(*folder, options);
  options.read_ahead = 0;
  Loader plain(*folder, options);
  EXPECT_EQ(read_stream(patient, 1), read_stream(plain, 1));
  EXPECT_EQ(patient.bad_files().size(), 1u);
}

// Ends loaders at 1,000 moments, with their own or shared workers, while files are read ahead.
TEST_F(ManyFiles, EndingAtAnyMomentTakesLessThanASecond) {
  const ImageFolder folder(folder_.path(), Part::train, {.test_share = 1e-9});
  philox::Stream random(5, 5);
  const auto pool = std::make_shared<WorkerPool>(2);
  double longest = 0;
  for (int i = 0; i < 1000; ++i) {
    LoaderOptions options{.batch = 6, .prefetch = 1 + i % 5, .read_ahead = i % 3, .cache_bytes = 0};
    if (i % 4 == 3) {
      options.pool = pool;
    } else {
      options.workers = i % 4;
    }
    auto loader = std::make_unique<Loader>(folder, options);
    loader->epoch(i, i % 7);
    Batch batch;
    for (uint32_t steps = random.next() % 8; steps > 0; --steps) {
      ASSERT_TRUE(loader->next(batch));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.next() % 300));
    const auto start = Clock::now();
    loader.reset();
    longest = std::max(longest, seconds_since(start));
  }
  EXPECT_LT(longest, 1);
}

}  // namespace
}  // namespace binade::data::loader_steady_test
