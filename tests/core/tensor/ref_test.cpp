// Tests the counts of Ref: with one thread, with several, and in a forked child.
#include <binade/core/tensor/ref.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include <tests/support/child_process.h>
#include <tests/support/sanitizers.h>

namespace binade::ref_test {
namespace {

struct Counted {
  std::atomic<uint32_t> refs{1};
  std::atomic<int>* destroyed;
  static void destroy(Counted* counted) noexcept {
    counted->destroyed->fetch_add(1);
    delete counted;
  }
};

// Copies and drops a Ref on several threads. Returns true if no change of the count was lost.
bool counts_are_exact() {
  constexpr int kThreads = 4, kCopies = 100'000;
  std::atomic<int> destroyed{0}, started{0};
  auto first = Ref<Counted>::adopt(new Counted{.destroyed = &destroyed});
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&started, own = first] {
      ++started;
      while (started < kThreads) {
        std::this_thread::yield();
      }
      for (int k = 0; k < kCopies; ++k) {
        Ref<Counted> copy = own;
        copy = {};
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const uint32_t after = first->refs;
  threads.clear();
  const bool alive = destroyed == 0;
  first = {};
  return after == 1 && alive && destroyed == 1;
}

// What a thread that the C library starts for a timer sees; -1 before it runs.
std::atomic<int> seen{-1};
void note_from_timer(sigval /*unused*/) { seen = detail::single_threaded(); }

// Runs in a new process. Returns 0, or the number of the step that failed.
int one_thread_then_several() {
#ifdef BINADE_HAS_SINGLE_THREADED
  if (!testing::kThreadSanitizer && !detail::single_threaded()) {
    return 1;
  }
#endif
  std::atomic<int> destroyed{0};
  auto first = Ref<Counted>::adopt(new Counted{.destroyed = &destroyed});
  std::vector<Ref<Counted>> copies(5, first);
  copies.pop_back();
  if (first->refs != 5) {
    return 2;
  }
  bool alone = true;
  std::thread([&, own = first] {
    alone = detail::single_threaded();
    copies.clear();
  }).join();
  if (alone || detail::single_threaded()) {
    return 3;
  }
  if (first->refs != 1 || destroyed != 0) {
    return 4;
  }
  first = {};
  return destroyed == 1 && counts_are_exact() ? 0 : 5;
}

// Runs in a new process. Its second thread is one that the C library starts.
int timer_starts_a_thread() {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = note_from_timer;
  timer_t timer{};
  const itimerspec soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 1'000'000}};
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
      ::timer_settime(timer, 0, &soon, nullptr) != 0) {
    return 1;
  }
  for (int i = 0; i < 1000 && seen < 0; ++i) {
    ::usleep(10'000);
  }
  return seen == 0 && !detail::single_threaded() ? 0 : 2;
}

TEST(Ref, CountsInANewProcess) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(std::exit(one_thread_then_several()), ::testing::ExitedWithCode(0), "");
  if (!testing::kThreadSanitizer) {  // it knows no thread that the C library starts by itself
    EXPECT_EXIT(std::exit(timer_starts_a_thread()), ::testing::ExitedWithCode(0), "");
  }
}

TEST(Ref, CountsOfSeveralThreadsAreExact) { EXPECT_TRUE(counts_are_exact()); }

// A child of fork() has one thread, whatever the parent has, and may start more.
TEST(Ref, CountsInAForkedChild) {
  if (testing::kThreadSanitizer) {
    GTEST_SKIP() << "skipped: ThreadSanitizer allows no threads after fork()";
  }
  std::atomic<int> destroyed{0};
  auto first = Ref<Counted>::adopt(new Counted{.destroyed = &destroyed});
  const Ref<Counted> second = first;
  const auto child = [&] {
    Ref<Counted> third = second;
    const bool up = first->refs == 3;
    third = {};
    ::_exit(up && first->refs == 2 && counts_are_exact() ? 0 : 1);
  };
  EXPECT_TRUE(testing::run_child(child));
  std::thread([&] { EXPECT_TRUE(testing::run_child(child)); }).join();
  EXPECT_EQ(first->refs, 2u);
}

}  // namespace
}  // namespace binade::ref_test
