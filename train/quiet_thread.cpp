#include <binade/kernels/base/error.h>
#include <binade/train/quiet_thread_internal.h>

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <utility>

namespace binade::train {

std::thread start_quiet_thread(const std::string& who, const std::string& purpose,
                               std::function<void()> work) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  std::string error;
  try {
    thread = std::thread(std::move(work));
  } catch (const std::system_error& refused) {
    error = refused.what();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  check(error.empty(), who, ": cannot start the thread that ", purpose, ": ", error);
  return thread;
}

}  // namespace binade::train
