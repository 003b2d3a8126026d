#include <binade/train/stop_signal.h>
#include <time.h>

#include <csignal>
#include <mutex>

namespace binade::train {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

// Signals belong to the process, so these variables do too.
std::mutex mutex;
int signal_watchers = 0;  // StopSignals that exist
struct sigaction before[2];

volatile std::sig_atomic_t signal_noted = 0, noted_at = 0;

std::sig_atomic_t seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::sig_atomic_t>(now.tv_sec);
}

// Does only what is safe in a signal handler.
void on_signal(int signal) {
  if (signal_noted == 0) {
    signal_noted = signal;
    noted_at = seconds();
  } else if (seconds() - noted_at > 1) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

StopSignal::StopSignal(bool on) : on_(on) {
  const std::lock_guard lock(mutex);
  if (!on_ || signal_watchers++ > 0) {
    return;
  }
  signal_noted = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < 2; ++i) {
    ::sigaction(kSignals[i], &action, &before[i]);
    if (before[i].sa_handler == SIG_IGN) {  // as of a program in the background
      ::sigaction(kSignals[i], &before[i], nullptr);
    }
  }
}

StopSignal::~StopSignal() {
  const std::lock_guard lock(mutex);
  if (!on_ || --signal_watchers > 0) {
    return;
  }
  for (int i = 0; i < 2; ++i) {
    ::sigaction(kSignals[i], &before[i], nullptr);
  }
}

int StopSignal::noted() const { return on_ ? signal_noted : 0; }

}  // namespace binade::train
