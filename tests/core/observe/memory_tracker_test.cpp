#include <binade/core/device/memory.h>
#include <binade/core/device/memory_limit.h>
#include <binade/core/observe/label.h>
#include <binade/core/observe/memory_tracker.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/sanitizers.h"

namespace binade::memory_tracker_test {
namespace {

int64_t bytes_of(const std::vector<LabelMemory>& labels, const std::string& label) {
  for (const LabelMemory& entry : labels) {
    if (entry.label == label) {
      return entry.bytes;
    }
  }
  return 0;
}

TEST(MemoryTracker, CountsBlocksByTheModuleThatAllocatedThem) {
  const uint32_t conv = intern_label(0, "conv");
  const Tensor before = zeros({1000});
  MemoryTracker tracker;
  const int64_t start = memory_stats().allocated;
  {
    const LabelScope scope(conv);
    const Tensor a = zeros({1001});
    EXPECT_EQ(bytes_of(tracker.by_label(), "conv"), memory_stats().allocated - start);
    EXPECT_GE(bytes_of(tracker.by_label(), "conv"), 4004);
    const Tensor small = zeros({3});  // below 1 KiB, so it is not tracked
    EXPECT_EQ(bytes_of(tracker.by_label(), "conv"), memory_stats().allocated - start);
  }
  EXPECT_EQ(tracker.by_label().size(), 0U);
  EXPECT_GE(bytes_of(tracker.take_peak(), "conv"), 4004);
  EXPECT_EQ(bytes_of(tracker.take_peak(), "conv"), 0);
}

TEST(MemoryTracker, AnotherThreadMayFreeABlock) {
  MemoryTracker tracker;
  auto x = std::make_unique<Tensor>(zeros({5000}));
  EXPECT_EQ(tracker.by_label().size(), 1U);
  std::thread([&x] { x.reset(); }).join();
  EXPECT_EQ(tracker.by_label().size(), 0U);
}

TEST(MemoryTracker, NamesWhatGrowsFromStepToStepAndNothingElse) {
  const uint32_t leaky = intern_label(0, "leaky"), steady = intern_label(0, "steady");
  MemoryTracker tracker;
  std::vector<Tensor> kept, state;
  for (int step = 0; step < 20; ++step) {
    {
      const LabelScope scope(steady);
      if (step == 1) {
        state.push_back(zeros({9000}));  // stays allocated, but does not grow
      }
      const Tensor temporary = zeros({7000});
    }
    const LabelScope scope(leaky);
    kept.push_back(zeros({3000}));
    tracker.end_step();
  }
  const std::vector<MemoryLeak> leaks = tracker.leaks();
  ASSERT_EQ(leaks.size(), 1U);
  EXPECT_EQ(leaks[0].label, "leaky");
  EXPECT_GE(leaks[0].bytes_per_step, 12000);
  EXPECT_LE(leaks[0].bytes_per_step, 15000);
  EXPECT_EQ(leaks[0].first_step, 1);
  EXPECT_NE(to_string(leaks[0]).find("leaky: "), std::string::npos);
  kept.clear();
  tracker.end_step();
  EXPECT_TRUE(tracker.leaks().empty());
}

TEST(MemoryTracker, ARefusedRequestSaysWhoHeldTheMemory) {
  const LabelScope outer(intern_label(0, "encoder"));
  MemoryTracker tracker;
  const Tensor a = zeros({100'000});
  {
    const LabelScope scope(intern_label(0, "decoder"));
    fail_allocation(1);
    EXPECT_THROW(zeros({123'000}), OutOfMemory);
  }
  const auto refusal = tracker.refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->label, "decoder");
  EXPECT_EQ(refusal->asked, 123'000 * 4);
  ASSERT_EQ(refusal->holders.size(), 1U);
  EXPECT_EQ(refusal->holders[0].label, "encoder");
  EXPECT_NE(memory_words(refusal->holders).find("encoder "), std::string::npos);
}

TEST(MemoryLimit, IsAnErrorThatCanBeCaughtAndGoesAway) {
  if (testing::kAddressSanitizer) {
    GTEST_SKIP() << "blocks come from malloc";
  }
  empty_cache();
  const int64_t before = set_memory_limit(memory_stats().reserved + 1'000'000);
  EXPECT_EQ(before, 0);
  EXPECT_EQ(memory_room(Device{}).reason, "set_memory_limit()");
  EXPECT_EQ(memory_room(Device{}).bytes, memory_limit());
  const std::string error = error_of([] { zeros({400'000}); });
  EXPECT_NE(error.find("allowed"), std::string::npos) << error;
  { const Tensor fits = zeros({200'000}); }
  const Tensor other = zeros({150'000});  // reuses the cached block
  set_memory_limit(0);
  EXPECT_EQ(zeros({400'000}).numel(), 400'000);
  EXPECT_GT(memory_room(Device{}).bytes, 1'000'000);
  EXPECT_NE(error_of([] { set_memory_limit(-1); }), "none");
}

}  // namespace
}  // namespace binade::memory_tracker_test
