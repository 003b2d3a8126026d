#include <binade/kernels/base/fork.h>
#include <pthread.h>

#include <atomic>

namespace binade {
namespace {

constinit std::atomic<uint32_t> forks{0};

}  // namespace

uint32_t fork_count() {
  static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

}  // namespace binade
