// Tests the loader with unreadable samples, from two threads at once, and after a fork.
#include <binade/core/io/file_system.h>
#include <binade/data/loader.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <set>
#include <thread>

#include "tests/data/fake_dataset.h"
#include "tests/data/image_stream.h"
#include "tests/data/test_files.h"
#include "tests/support/child_process.h"
#include "tests/support/sanitizers.h"

namespace binade::data::loader_faults_test {
namespace {

using test::FakeDataset;
using test::read_stream;
using test::Stream;

TEST(LoaderFaults, exceptions_reach_next_with_index_and_path) {
  for (int workers : {0, 1, 3}) {
    for (int64_t bad : {0, 5, 19}) {
      for (int kind = 0; kind < 4; ++kind) {
        FakeDataset dataset(20);
        dataset.before_get = [&](int64_t index) {
          if (index == bad) {
            switch (kind) {
              case 0: fail("the file is broken");
              case 1: throw std::bad_alloc();
              case 2: throw std::runtime_error("odd");
              default: throw 42;
            }
          }
        };
        Loader loader(dataset, {.batch = 4, .workers = workers, .shuffle = false});
        loader.epoch(0);
        Batch batch;
        for (int64_t i = 0; i < bad / 4; ++i) {
          ASSERT_TRUE(loader.next(batch));
        }
        const char* causes[] = {"the file is broken", "out of memory", "odd", "unknown exception"};
        EXPECT_ERROR(loader.next(batch),
                     text("sample ", bad, " (fake/", bad, ".png): ", causes[kind]));
        EXPECT_FALSE(batch.images.defined());
        EXPECT_ERROR(loader.next(batch), "earlier error");
        EXPECT_ERROR(loader.epoch(1), "earlier error");
      }
    }
  }
}

TEST(LoaderFaults, out_of_memory_keeps_its_type) {
  FakeDataset dataset(4);
  dataset.before_get = [](int64_t) { throw std::bad_alloc(); };
  Loader loader(dataset, {.batch = 2, .workers = 1, .bad_file = BadFilePolicy::skip});
  loader.epoch(0);
  Batch batch;
  EXPECT_THROW(loader.next(batch), OutOfMemory);
}

FakeDataset with_bad_files(int64_t size, std::set<int64_t> bad) {
  FakeDataset dataset(size);
  dataset.before_get = [bad = std::move(bad)](int64_t index) {
    check(!bad.contains(index), "fake/", index, ".png: broken");
  };
  return dataset;
}

TEST(LoaderFaults, replace_takes_the_next_good_sample) {
  const FakeDataset dataset = with_bad_files(12, {2, 3, 11});
  for (int workers : {0, 1, 4}) {
    Loader loader(
        dataset,
        {.batch = 4, .workers = workers, .shuffle = false, .bad_file = BadFilePolicy::replace});
    EXPECT_EQ(read_stream(loader, 0).indices,
              (std::vector<int64_t>{0, 1, 4, 4, 4, 5, 6, 7, 8, 9, 10, 0}));
    EXPECT_EQ(read_stream(loader, 1).indices.size(), 12u);
    const std::vector<BadFile> bad = loader.bad_files();
    ASSERT_EQ(bad.size(), 3u);
    EXPECT_EQ(bad[0].index, 2);
    EXPECT_EQ(bad[0].path, "fake/2.png");
    EXPECT_TRUE(test::contains(bad[0].reason, "broken"));
    EXPECT_EQ(loader.stats().decode_errors, 3);
  }
}

// The replacement is the next sample in the epoch's order, even if it belongs to another shard.
TEST(LoaderFaults, replace_steps_through_the_order_of_the_epoch) {
  const FakeDataset good(40), dataset = with_bad_files(40, {5, 6, 21, 33});
  for (const bool shuffle : {false, true}) {
    for (int64_t shard = 0; shard < 3; ++shard) {
      LoaderOptions options{.batch = 4, .workers = 2, .seed = 3, .shuffle = shuffle};
      options.bad_file = BadFilePolicy::replace;
      Loader all(good, {.batch = 40, .workers = 0, .seed = 3, .shuffle = shuffle});
      const std::vector<int64_t> order = read_stream(all, 2).indices;
      options.shard = shard, options.shard_count = 3;
      Loader loader(dataset, options);
      const std::vector<int64_t> got = read_stream(loader, 2).indices;
      for (size_t i = 0; i < got.size(); ++i) {
        size_t position = 3 * i + static_cast<size_t>(shard);
        while (std::set<int64_t>{5, 6, 21, 33}.contains(order[position % 40])) {
          ++position;
        }
        EXPECT_EQ(got[i], order[position % 40]) << "shard " << shard << " sample " << i;
      }
    }
  }
}

// A good file that cannot be opened for lack of resources is not replaced.
TEST(LoaderFaults, missing_resources_are_no_bad_files) {
  FakeDataset dataset(8);
  dataset.before_get = [](int64_t index) {
    if (index == 3) {
      throw FileError("fake/3.png: cannot open the file: Too many open files", EMFILE);
    }
  };
  for (const auto policy : {BadFilePolicy::replace, BadFilePolicy::skip}) {
    Loader loader(dataset, {.batch = 4, .workers = 1, .bad_file = policy});
    EXPECT_ERROR(read_stream(loader, 0), "Too many open files");
  }
  EXPECT_ERROR(compute_mean_std(dataset, true), "Too many open files");
}

TEST(LoaderFaults, two_threads_at_once_are_an_error) {
  FakeDataset dataset(64);
  std::atomic<bool> hold{true};
  dataset.before_get = [&](int64_t index) {
    while (index == 0 && hold) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  for (const int workers : {0, 2}) {
    hold = true;
    Loader loader(dataset, {.batch = 8, .workers = workers, .shuffle = false, .cache_bytes = 0});
    loader.epoch(0);
    Batch first;
    std::thread taker([&] {  // retries if it comes while this thread starts an epoch
      while (error_of([&] { EXPECT_TRUE(loader.next(first)); }) != "none") {
      }
    });
    while (error_of([&] { loader.epoch(0); }) == "none") {  // until the other thread is in next()
      std::this_thread::yield();
    }
    Batch second;
    EXPECT_ERROR(loader.epoch(1), "while another thread is in one of them");
    EXPECT_ERROR(loader.next(second), "while another thread is in one of them");
    hold = false;
    taker.join();
    EXPECT_EQ(first.indices[0], 0);
    EXPECT_TRUE(loader.next(first));  // the loader still works
    EXPECT_EQ(first.indices[0], 8);
  }
}

// A forked child has none of its parent's threads.
TEST(LoaderFaults, a_forked_child_gets_an_error_or_its_own_loader) {
  if (testing::kThreadSanitizer) {
    GTEST_SKIP() << "skipped: ThreadSanitizer allows no threads after fork()";
  }
  const FakeDataset dataset(64);
  Loader used(dataset, {.batch = 8, .workers = 2, .shuffle = false});
  Loader unused(dataset, {.batch = 8, .workers = 2, .shuffle = false});
  used.epoch(0);
  Batch batch;
  ASSERT_TRUE(used.next(batch));
  const auto work = [&] {
    const std::string error = error_of([&] { used.next(batch); });
    std::optional<Loader> own;
    own.emplace(dataset, LoaderOptions{.batch = 8, .workers = 2, .shuffle = false});
    const bool good = test::contains(error, "before fork()") &&
                      read_stream(*own, 0).sizes.size() == 8 &&
                      read_stream(unused, 0).sizes.size() == 8;
    own.reset();
    ::_exit(good ? 0 : 1);
  };
  EXPECT_TRUE(testing::run_child(work));
  EXPECT_TRUE(used.next(batch));  // the parent's loader still works
}

TEST(LoaderFaults, skip_makes_batches_smaller_but_never_empty) {
  const FakeDataset dataset = with_bad_files(12, {2, 4, 5, 6, 7});
  for (int workers : {0, 1, 4}) {
    Loader loader(
        dataset,
        {.batch = 4, .workers = workers, .shuffle = false, .bad_file = BadFilePolicy::skip});
    const Stream stream = read_stream(loader, 0);
    EXPECT_EQ(stream.sizes, (std::vector<int64_t>{3, 1, 4}));
    EXPECT_EQ(stream.indices, (std::vector<int64_t>{0, 1, 3, 8, 8, 9, 10, 11}));
  }
}

TEST(LoaderFaults, too_many_bad_files_are_an_error) {
  const FakeDataset dataset = with_bad_files(12, {1, 5, 9});
  for (int workers : {0, 2}) {
    Loader loader(dataset, {.batch = 4,
                            .workers = workers,
                            .shuffle = false,
                            .bad_file = BadFilePolicy::skip,
                            .max_bad = 2});
    loader.epoch(0);
    Batch batch;
    EXPECT_TRUE(loader.next(batch));
    EXPECT_TRUE(loader.next(batch));
    EXPECT_ERROR(loader.next(batch), "3 unreadable files, the limit is 2");
  }
  std::set<int64_t> all;
  for (int64_t i = 0; i < 12; ++i) {
    all.insert(i);
  }
  const FakeDataset hopeless = with_bad_files(12, all);
  Loader loader(hopeless, {.batch = 4, .workers = 2, .bad_file = BadFilePolicy::replace});
  loader.epoch(0);
  Batch batch;
  EXPECT_ERROR(loader.next(batch), "no readable sample");
}

}  // namespace
}  // namespace binade::data::loader_faults_test
