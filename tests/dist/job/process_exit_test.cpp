#include <binade/dist/job/process_exit_internal.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

namespace binade::dist::process_exit_test {
namespace {

// Returns the wait() status of a child that gets SIGTERM and then runs `work`.
template <class F>
int status_after_termination(F&& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    delay_termination();
    ::raise(SIGTERM);
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(DelayTermination, LeavesTimeToSpeak) {
  const int status = status_after_termination([] { end_process(kJobFailed, "spoken\n"); });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kJobFailed);
}

TEST(DelayTermination, EndsAProcessThatSaysNothing) {
  const auto start = std::chrono::steady_clock::now();
  const int status = status_after_termination([] {
    for (;;) {
      ::pause();
    }
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  EXPECT_GT(seconds.count(), 0.5);
}

TEST(DelayTermination, LeavesAHandlerOfTheProgramAlone) {
  ::signal(SIGTERM, SIG_IGN);
  EXPECT_EQ(status_after_termination([] {}), 0);
  struct sigaction now {};
  ::sigaction(SIGTERM, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
  ::signal(SIGTERM, SIG_DFL);
}

}  // namespace
}  // namespace binade::dist::process_exit_test
