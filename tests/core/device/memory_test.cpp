#include <binade/core/device/memory.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/parallel.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

// A request that is too large must also fail normally under a sanitizer.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace binade::memory_test {
namespace {

TEST(Memory, BlocksAreAlignedAndApart) {
  std::vector<std::pair<std::byte*, size_t>> blocks;
  for (size_t bytes : {1, 63, 64, 65, 1000, 1024, 1025, 4096, 5000, 100'000, 3'000'000}) {
    for (int i = 0; i < 3; ++i) {
      auto* block = static_cast<std::byte*>(allocate(bytes));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u) << bytes;
      std::memset(block, static_cast<int>(blocks.size()), bytes);
      blocks.emplace_back(block, bytes);
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (size_t at : {size_t(0), blocks[i].second / 2, blocks[i].second - 1}) {
      EXPECT_EQ(blocks[i].first[at], static_cast<std::byte>(i));
    }
    release(blocks[i].first, blocks[i].second);
  }
}

TEST(Memory, ASteadyStateReachesTheSystemNoMore) {
  // Uses one thread: a pool thread that starts late would still fill its own magazines.
  kernels::SerialGuard serial;
  auto step = [] {
    Tensor x = full({64, 300}, 1), w = full({300, 50}, 1).require_grad();
    sum(relu(matmul(x, w))).backward();
    Tensor images = full({8, 32, 8, 8}, 1).require_grad();  // large enough for Winograd
    Tensor taps = full({32, 32, 3, 3}, 1).require_grad();
    sum(conv2d(images, taps, Tensor(), {.padding = {1, 1}})).backward();
  };
  step();
  step();
  const MemoryStats before = memory_stats();
  for (int i = 0; i < 20; ++i) {
    step();
  }
#ifndef BINADE_PLAIN_MALLOC
  EXPECT_EQ(memory_stats().system_allocations, before.system_allocations);
#endif
  EXPECT_EQ(memory_stats().allocated, before.allocated);
}

TEST(Memory, PeakIsTheLargestSinceItsReset) {
  reset_peak_memory();
  const int64_t base = memory_stats().allocated;
  { Tensor big = empty({1 << 20}, DType::u8); }
  EXPECT_GE(memory_stats().peak, base + (1 << 20));
  reset_peak_memory();
  EXPECT_EQ(memory_stats().peak, memory_stats().allocated);
}

TEST(Memory, EmptyCacheGivesBackWhatWasReserved) {
  { Tensor big = empty({5'000'000}, DType::u8); }
  const int64_t before = memory_stats().reserved;
  empty_cache();
#ifndef BINADE_PLAIN_MALLOC
  EXPECT_LE(memory_stats().reserved, before - 5'000'000);
#else
  EXPECT_LE(memory_stats().reserved, before);
#endif
  EXPECT_GE(memory_stats().reserved, 0);
}

// Fails each large allocation of a training step in turn: each throws one OutOfMemory, nothing
// leaks, and the next step has the same bits.
TEST(Memory, AnyFailedAllocationLeavesNothingBehind) {
  Tensor x = randn({40, 60}), w = randn({60, 70});
  w.require_grad();
  auto step = [&] {
    w.zero_grad();
    sum(relu(matmul(x, w))).backward();
    return w.grad().at(7);
  };
  const double expected = step();
  const int64_t allocated = memory_stats().allocated;
  int failures = 0;
  for (int64_t n = 1;; ++n) {
    fail_allocation(n);
    try {
      EXPECT_EQ(step(), expected);
      fail_allocation(0);
      break;
    } catch (const OutOfMemory& error) {
      ++failures;
      EXPECT_NE(std::string(error.what()).find("out of memory on cpu: got a request for"),
                std::string::npos);
    }
    EXPECT_EQ(memory_stats().allocated, allocated);
    EXPECT_EQ(step(), expected);
  }
  EXPECT_GE(failures, 3);
}

TEST(Memory, BlocksMayBeFreedByOtherThreads) {
  for (int round = 0; round < 3; ++round) {
    std::vector<Tensor> tensors;
    for (int i = 0; i < 2000; ++i) {
      tensors.push_back(full({i % 50 + 1}, i));
    }
    std::thread other([tensors = std::move(tensors)]() mutable {
      for (size_t i = 0; i < tensors.size(); ++i) {
        EXPECT_EQ(tensors[i].at(0), static_cast<double>(i));
      }
      tensors.clear();
    });
    other.join();
  }
}

TEST(Memory, HugeRequestsAreErrors) {
  EXPECT_THROW(empty({int64_t(1) << 55}), OutOfMemory);
  EXPECT_THROW(empty({int64_t(1) << 40, int64_t(1) << 40}), Error);
  EXPECT_THROW(empty({-1}), Error);
}

}  // namespace
}  // namespace binade::memory_test
