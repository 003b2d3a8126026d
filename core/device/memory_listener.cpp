#include <binade/core/device/memory_listener.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace binade {
namespace detail {

constinit std::atomic<int> memory_listeners = 0;

namespace {

struct Listeners {
  std::mutex mutex;
  std::vector<MemoryListener*> all;
};

Listeners& listeners() {  // never destroyed: threads may end after main
  static auto* instance = new Listeners;
  return *instance;
}

template <class F>
void for_each_listener(F f) noexcept {
  const std::lock_guard lock(listeners().mutex);
  for (MemoryListener* listener : listeners().all) {
    f(*listener);
  }
}

}  // namespace

void tell_allocated(Device device, const void* block, size_t asked, size_t bytes) noexcept {
  for_each_listener([&](MemoryListener& to) { to.allocated(device, block, asked, bytes); });
}
void tell_released(Device device, const void* block) noexcept {
  for_each_listener([&](MemoryListener& to) { to.released(device, block); });
}
void tell_refused(Device device, size_t asked) noexcept {
  for_each_listener([&](MemoryListener& to) { to.refused(device, asked); });
}

}  // namespace detail

void add_memory_listener(MemoryListener& listener) {
  const std::lock_guard lock(detail::listeners().mutex);
  detail::listeners().all.push_back(&listener);
  detail::memory_listeners.fetch_add(1);
}

void remove_memory_listener(MemoryListener& listener) {
  const std::lock_guard lock(detail::listeners().mutex);
  detail::memory_listeners.fetch_sub(
      static_cast<int>(std::erase(detail::listeners().all, &listener)));
}

}  // namespace binade
