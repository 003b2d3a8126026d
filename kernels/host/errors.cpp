// Error messages of the executor for kernels that break a rule.
#include <binade/kernels/host/executor_internal.h>

#include <cstdio>
#if BINADE_HOST_ASAN
#include <sanitizer/asan_interface.h>
extern "C" void __asan_describe_address(void* address);
#endif

namespace binade::kernels::host {
namespace {

constexpr ptrdiff_t kMostStack = ptrdiff_t{1} << 20;  // more than a fiber has

}  // namespace

std::string to_string(Index index) {
  return text("(", index.value.x, ",", index.value.y, ",", index.value.z, ")");
}
std::string to_string(Site site) {
  return text(site.file != nullptr ? site.file : "?", ":", site.line);
}
std::string to_string(const Waiting& waiting) {
  const Thread& thread = waiting.x.threads[static_cast<size_t>(waiting.thread)];
  std::string where = text("thread ", Index{thread.index}, " (warp ", waiting.thread / 32, " lane ",
                           waiting.thread % 32, ") at ", thread.what, " at ", thread.site);
  if (thread.state == ThreadState::at_barrier && thread.barrier != 0) {
    where += text(" (barrier ", thread.barrier, ")");
  }
  return where;
}
std::string to_string(Mask mask) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "0x%08x", mask.value);
  return digits;
}

uint64_t call_path(const Executor& x, const void* frame) {
  uint64_t path = 0;
#if defined(__x86_64__) || defined(__aarch64__)
  // A frame begins with the caller's frame and the return address. A function without a frame
  // pointer is skipped; a value that is no frame further up the stack ends the walk.
  const auto* base = static_cast<const char*>(x.threads[static_cast<size_t>(x.current)].base);
  const auto* at = static_cast<const char*>(frame);
  while (at < base && base - at < kMostStack && reinterpret_cast<uintptr_t>(at) % 16 == 0) {
    const auto* words = reinterpret_cast<const uintptr_t*>(at);
    path = (path ^ words[1]) * 0x9e3779b97f4a7c15u;
    const auto* caller = reinterpret_cast<const char*>(words[0]);  // NOLINT
    if (caller <= at) {
      break;
    }
    at = caller;
  }
#else
  static_cast<void>(x);
  static_cast<void>(frame);
#endif
  return path;
}

const char* other_path(const Site& a, const Site& b) {
  return a.line == b.line && a.file == b.file ? ", reached by another call" : "";
}

uint3 block_index(const Executor& x, uint64_t block) {
  const dim3 grid = x.grid.grid;
  return {static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
          static_cast<unsigned>(block / grid.x / grid.y)};
}

void die(Executor& x, Fiber& self, std::string message) {
  std::string where = text("kernel ", x.grid.kernel, ", block ", Index{block_index(x, x.block)},
                           ", thread ", Index{current_thread(x).index}, ": ");
  message.insert(0, where);
  std::string().swap(where);
  std::string().swap(x.error);
  x.error.swap(message);
  x.failed = true;
  switch_fiber(self, x.main, true);
  __builtin_unreachable();
}

void fail_kernel(std::string message) {
  Executor& x = executor();
  die(x, *current_thread(x).fiber, std::move(message));
}

void deadlock(Executor& x, Fiber& self) {
  constexpr int kShown = 6;
  std::string message = "deadlock: no thread of the block can run";
  int shown = 0;
  const Thread* last = nullptr;  // the last one listed
  for (int i = 0; i < x.thread_count && shown < kShown; ++i) {
    const Thread& thread = x.threads[static_cast<size_t>(i)];
    const bool same = last != nullptr && thread.site.file == last->site.file &&
                      thread.site.line == last->site.line && thread.barrier == last->barrier;
    if (thread.state != ThreadState::done && !same) {
      message += text("\n    waits: ", Waiting{x, i});
      last = &thread;
      ++shown;
    }
  }
  if (x.exited > 0) {
    message += text("\n    ended: ", x.exited, " threads");
  }
  die(x, self, std::move(message));
}

void check_address([[maybe_unused]] const void* p, [[maybe_unused]] size_t bytes,
                   [[maybe_unused]] const char* what, [[maybe_unused]] Site site) {
#if BINADE_HOST_ASAN
  void* bad = __asan_region_is_poisoned(const_cast<void*>(p), bytes);
  if (bad != nullptr) {
    __asan_describe_address(bad);  // prints which allocation it is near
    const auto offset = static_cast<const char*>(bad) - static_cast<const char*>(p);
    fail_thread(what, " at ", site, ": byte ", offset, " of ", bytes, " is not valid memory");
  }
#endif
}

}  // namespace binade::kernels::host
