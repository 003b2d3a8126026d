#include <binade/train/stop_signal.h>
#include <gtest/gtest.h>

#include <csignal>

namespace binade::train::stop_signal_test {
namespace {

volatile std::sig_atomic_t seen = 0;

TEST(StopSignal, NotesTheFirstAndGivesTheHandlersBack) {
  std::signal(SIGTERM, [](int signal) { seen = signal; });
  {
    const StopSignal stop(true);
    EXPECT_EQ(stop.noted(), 0);
    {
      const StopSignal inner(true), off(false);
      std::raise(SIGTERM);
      std::raise(SIGINT);  // so soon that it may be the same signal
      EXPECT_EQ(inner.noted(), SIGTERM);
      EXPECT_EQ(off.noted(), 0);
    }
    EXPECT_EQ(stop.noted(), SIGTERM);
    EXPECT_EQ(seen, 0);
  }
  std::raise(SIGTERM);
  EXPECT_EQ(seen, SIGTERM);
  EXPECT_EQ(StopSignal(true).noted(), 0);
  std::signal(SIGTERM, SIG_DFL);
}

TEST(StopSignal, LeavesIgnoredSignalsIgnored) {
  std::signal(SIGINT, SIG_IGN);
  {
    const StopSignal stop(true);
    std::raise(SIGINT);
    EXPECT_EQ(stop.noted(), 0);
  }
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace
}  // namespace binade::train::stop_signal_test
