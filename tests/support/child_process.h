// A forked process for tests of what survives its death.
#pragma once
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace binade::testing {

// Runs `work` in a child process, which is killed after this many microseconds if that is more than
// 0. Returns true if it ended on its own.
template <class F>
bool run_child(F&& work, unsigned kill_after_microseconds = 0) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  if (kill_after_microseconds > 0) {
    ::usleep(kill_after_microseconds);
    ::kill(child, SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace binade::testing
