#include <binade/kernels/base/error.h>
#include <binade/kernels/base/parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/support/sanitizers.h"

namespace binade::kernels::parallel_test {
namespace {

class Threads {  // restores the default at the end of a test
 public:
  explicit Threads(int count) { set_threads(count); }
  ~Threads() { set_threads(0); }
};

TEST(ParallelFor, VisitsEveryIndexOnce) {
  for (int threads : {1, 2, 3, 16}) {
    Threads scope(threads);
    for (int64_t count : {0, 1, 2, 7, 64, 1001}) {
      for (int64_t grain : {1, 5, 2000}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
        parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          EXPECT_LT(begin, end);
          for (int64_t i = begin; i < end; ++i) {
            ++visits[static_cast<size_t>(i)];
          }
        });
        for (const auto& visit : visits) {
          ASSERT_EQ(visit, 1) << threads << " threads, count " << count << ", grain " << grain;
        }
      }
    }
  }
}

TEST(ParallelFor, UsesSeveralThreads) {
  Threads scope(2);
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  parallel_for(2, 1, [&](int64_t, int64_t) {  // each part waits until the other has started
    ++inside;
    for (int i = 0; i < 20000 && inside < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    met = inside == 2;
  });
  EXPECT_TRUE(met);
}

// Returns the thread of each of 8 parts when two threads are equally fast.
std::vector<std::thread::id> threads_of_parts() {
  std::vector<std::thread::id> ids(8);
  std::atomic<int> begun{0};
  parallel_for(8, 1, [&](int64_t begin, int64_t) {
    const int step = static_cast<int>(begin) % 4 + 1;
    ids[static_cast<size_t>(begin)] = std::this_thread::get_id();
    ++begun;
    for (int i = 0; i < 20000 && begun < 2 * step; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  return ids;
}

TEST(ParallelFor, NeighbouringPartsAreOneThreads) {
  Threads scope(2);
  const std::thread::id here = std::this_thread::get_id();
  bool seen = false;
  for (int round = 0; round < 20 && !seen; ++round) {  // a thread that is late may disturb a round
    const std::vector<std::thread::id> ids = threads_of_parts();
    const std::thread::id other = ids[7];
    seen = other != here && ids == std::vector{here, here, here, here, other, other, other, other};
  }
  EXPECT_TRUE(seen);
}

TEST(ParallelFor, ThrowsTheBodysExceptionAndGoesOn) {
  Threads scope(4);
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(parallel_for(100, 1,
                              [](int64_t begin, int64_t end) {
                                if (begin <= 42 && 42 < end) {
                                  fail("planted");
                                }
                              }),
                 Error);
  }
  std::atomic<int64_t> sum{0};
  parallel_for(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum, 100);
}

TEST(ParallelFor, NestedAndGuardedCallsAreSerial) {
  Threads scope(4);
  std::atomic<int> ranges{0};
  parallel_for(8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      parallel_for(100, 1, [&](int64_t, int64_t) { ++ranges; });
    }
  });
  EXPECT_EQ(ranges, 8);
  SerialGuard guard;
  ranges = 0;
  parallel_for(100, 1, [&](int64_t, int64_t) { ++ranges; });
  EXPECT_EQ(ranges, 1);
}

TEST(ParallelFor, CallersOnSeveralThreads) {
  Threads scope(3);
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(4);
  for (size_t t = 0; t < sums.size(); ++t) {
    callers.emplace_back([&sums, t] {
      for (int round = 0; round < 500; ++round) {
        std::atomic<int64_t> sum{0};
        parallel_for(257, 4, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            sum += i;
          }
        });
        sums[t] += sum;
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(sums, std::vector<int64_t>(4, int64_t(500) * 257 * 256 / 2));
}

// The threads of the pool belong to the parent, so the child starts its own.
TEST(ParallelFor, AForkedChildHasThreads) {
  if (testing::kThreadSanitizer) {
    GTEST_SKIP() << "skipped: ThreadSanitizer allows no threads after fork()";
  }
  const Threads four(4);
  const auto count = [&] {
    std::set<std::thread::id> ids;
    std::mutex mutex;
    for (int i = 0; i < 200 && ids.size() < 2; ++i) {
      parallel_for(64, 1, [&](int64_t, int64_t) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        const std::lock_guard lock(mutex);
        ids.insert(std::this_thread::get_id());
      });
    }
    return ids.size();
  };
  EXPECT_GE(count(), 2u);
  EXPECT_TRUE(testing::run_child([&] { ::_exit(count() >= 2 ? 0 : 1); }));
  EXPECT_GE(count(), 2u);
}

TEST(ParallelFor, SettingsOfThreads) {
  set_threads(3);
  EXPECT_EQ(threads(), 3);
  set_threads(0);
  EXPECT_GE(threads(), 1);
}

}  // namespace
}  // namespace binade::kernels::parallel_test
