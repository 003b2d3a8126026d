#include <binade/kernels/base/error.h>
#include <binade/kernels/cuda/recent_cache_internal.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/plan_limit.h>

#include <memory>
#include <string>
#include <vector>

namespace binade::kernels::recent_cache_test {
namespace {

using Cache = RecentCache<std::vector<int>, std::shared_ptr<std::string>>;

std::shared_ptr<std::string> value(const char* word) { return std::make_shared<std::string>(word); }

TEST(RecentCache, TakesOutWhatWasNotUsedForTheLongestTime) {
  Cache cache;
  EXPECT_EQ(cache.find({1}), nullptr);
  EXPECT_FALSE(cache.take_beyond(0));
  cache.add({1}, value("one"));
  cache.add({2, 2}, value("two"));
  auto& three = cache.add({3}, value("three"));
  EXPECT_EQ(*three, "three");
  ASSERT_NE(cache.find({1}), nullptr);  // now more recent than two
  EXPECT_EQ(**cache.find({1}), "one");
  EXPECT_FALSE(cache.take_beyond(3));
  EXPECT_EQ(**cache.take_beyond(2), "two");
  EXPECT_EQ(cache.find({2, 2}), nullptr);
  EXPECT_EQ(cache.size(), 2);
  EXPECT_EQ(**cache.find({3}), "three");
  EXPECT_EQ(**cache.take_beyond(0), "one");
  EXPECT_EQ(**cache.take_beyond(0), "three");
  EXPECT_FALSE(cache.take_beyond(0));
  cache.add({2, 2}, value("again"));
  EXPECT_EQ(**cache.find({2, 2}), "again");
}

TEST(RecentCache, TakesOutTheOldestUnusedValueAndListsAllByKey) {
  Cache cache;
  const std::shared_ptr<std::string> used = value("used");
  cache.add({3}, used);
  cache.add({2}, value("two"));
  cache.add({1}, value("one"));
  const auto unused = [](const std::shared_ptr<std::string>& v) { return v.use_count() == 1; };
  EXPECT_EQ(**cache.take_beyond(2, unused), "two");
  EXPECT_FALSE(cache.take_beyond(2, unused));
  std::string all;
  cache.each([&](const std::vector<int>& key, const auto& v) {
    all += std::to_string(key[0]) + *v + " ";
  });
  EXPECT_EQ(all, "1one 3used ");
  EXPECT_EQ(**cache.take_beyond(0, unused), "one");
  EXPECT_FALSE(cache.take_beyond(0, unused));
  EXPECT_EQ(**cache.take_beyond(0), "used");
  EXPECT_EQ(cache.size(), 0);
}

// The cache keeps no reference to values that it gave away.
TEST(RecentCache, KeepsNothingOfWhatItGivesAway) {
  Cache cache;
  const std::shared_ptr<std::string> kept = value("kept");
  for (int i = 0; i < 100; ++i) {
    cache.add({i}, kept);
    while (cache.take_beyond(5)) {
    }
    EXPECT_LE(cache.size(), 5);
    EXPECT_EQ(kept.use_count(), cache.size() + 1);
  }
}

TEST(PlanLimit, IsAtLeastOne) {
  EXPECT_EQ(plan_limit(), kDefaultPlanLimit);
  {
    const PlanLimit limit(7);
    EXPECT_EQ(plan_limit(), 7);
    EXPECT_THROW(set_plan_limit(0), Error);
    EXPECT_EQ(plan_limit(), 7);
  }
  EXPECT_EQ(plan_limit(), kDefaultPlanLimit);
}

}  // namespace
}  // namespace binade::kernels::recent_cache_test
