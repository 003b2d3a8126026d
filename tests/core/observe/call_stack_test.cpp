// Tests record_call_stack(): equal stacks have one number, also where only an outer call differs.
#include <binade/core/observe/call_stack_internal.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace binade::call_stack_test {
namespace {

using detail::record_call_stack;

// Not inlined, and no call is the last thing that a function does, so that each has a frame.
__attribute__((noinline)) uint32_t inner(volatile int* keep) {
  const uint32_t number = record_call_stack();
  *keep = *keep + 1;
  return number;
}
__attribute__((noinline)) uint32_t one(volatile int* keep) {
  const uint32_t number = inner(keep);
  *keep = *keep + 1;
  return number;
}
__attribute__((noinline)) uint32_t other(volatile int* keep) {  // with a frame as large as one()'s
  const uint32_t number = inner(keep);
  *keep = *keep + 2;
  return number;
}
__attribute__((noinline)) uint32_t deeper(int depth, volatile int* keep) {
  const uint32_t number = depth == 0 ? inner(keep) : deeper(depth - 1, keep);
  *keep = *keep + 1;
  return number;
}

TEST(CallStack, EqualStacksHaveOneNumber) {
  volatile int keep = 0;
  std::set<uint32_t> numbers;
  for (int i = 0; i < 100; ++i) {
    numbers.insert(one(&keep));
  }
  EXPECT_EQ(numbers.size(), 1u);
  EXPECT_FALSE(numbers.contains(0));
}

TEST(CallStack, AnOuterCallCounts) {
  volatile int keep = 0;
  std::set<uint32_t> numbers;
  for (int i = 0; i < 10; ++i) {
    const uint32_t a = one(&keep);
    const uint32_t b = other(&keep);
    EXPECT_NE(a, b);
    numbers.insert({a, b});
  }
  EXPECT_EQ(numbers.size(), 2u);
}

TEST(CallStack, TwoCallsInOneLoopDiffer) {
  volatile int keep = 0;
  std::set<uint32_t> first, second;
  for (int i = 0; i < 10; ++i) {
    first.insert(one(&keep));
    second.insert(one(&keep));
  }
  EXPECT_EQ(first.size(), 1u);
  EXPECT_EQ(second.size(), 1u);
  EXPECT_NE(*first.begin(), *second.begin());
}

// More stacks than a thread remembers per frame, and frames at many places.
TEST(CallStack, EachDepthHasItsNumber) {
  volatile int keep = 0;
  std::set<uint32_t> numbers;
  for (int round = 0; round < 3; ++round) {
    for (int depth = 0; depth < 50; ++depth) {
      numbers.insert(deeper(depth, &keep));
    }
  }
  EXPECT_EQ(numbers.size(), 50u);
}

TEST(CallStack, ThreadsShareNumbers) {
  const auto number_in_thread = [] {
    uint32_t number = 0;
    std::thread([&] {
      volatile int keep = 0;
      number = one(&keep);
    }).join();
    return number;
  };
  EXPECT_EQ(number_in_thread(), number_in_thread());
}

}  // namespace
}  // namespace binade::call_stack_test
