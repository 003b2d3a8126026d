#include <binade/core/device/device_memory.h>
#include <binade/core/device/memory.h>
#include <binade/core/device/memory_limit.h>
#include <binade/core/device/memory_listener.h>
#include <binade/core/observe/timeline.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/workspace.h>
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>
#include <vector>

namespace binade {
namespace detail {

constinit thread_local ThreadState thread_state;

namespace {

constexpr size_t kLargeClasses = 256;

struct Central {  // shared by all threads; reached once per magazine or per large block
  std::mutex mutex;
  std::vector<FreeBlock*> magazines[kSmallClasses];
  std::vector<void*> large[kLargeClasses];
  MemoryStats stats;
  int64_t fail_in = 0;
  int64_t limit = 0;            // of the reserved bytes; 0: none
  int64_t noted_reserved = -1;  // in the timeline
};

Central& central();

Central* make_central() {
  // A child of fork() must not inherit the lock from a thread that it does not have.
  ::pthread_atfork([] { central().mutex.lock(); }, [] { central().mutex.unlock(); },
                   [] { central().mutex.unlock(); });
  return new Central;
}

Central& central() {  // never destroyed: threads may end after main
  static Central* instance = make_central();
  return *instance;
}

// Four classes per doubling: at most 25% is wasted.
size_t large_class(size_t bytes, size_t& rounded) {
  const int top = std::bit_width(bytes - 1) - 1;
  const size_t step = size_t(1) << (top - 2);
  rounded = (bytes + step - 1) / step * step;
  return static_cast<size_t>(top) * 4 + (rounded / step) % 4;
}

void* system_allocate(Central& c, size_t bytes) {
  if (c.limit > 0 && c.stats.reserved + static_cast<int64_t>(bytes) > c.limit) {
    return nullptr;
  }
  void* block = std::aligned_alloc(kLineBytes, (bytes + kLineBytes - 1) / kLineBytes * kLineBytes);
  if (block) {
    c.stats.reserved += static_cast<int64_t>(bytes);
    ++c.stats.system_allocations;
  }
  return block;
}

// Adds changes of the statistics to the timeline; what is not said here is what a profiler said
// when its window began. REQUIRES: c.mutex is held, so that the changes are in the order of their
// times.
void note_memory(Central& c) noexcept {
  if (timeline_has(Activity::memory)) [[unlikely]] {
    timeline_counter("allocated", static_cast<double>(c.stats.allocated));
    if (std::exchange(c.noted_reserved, c.stats.reserved) != c.stats.reserved) {
      timeline_counter("reserved", static_cast<double>(c.stats.reserved));
    }
  }
}

void drop_large_blocks(Central& c) {
  for (size_t index = 0; index < kLargeClasses; ++index) {
    const size_t step = size_t(1) << (std::max<size_t>(index / 4, 2) - 2);
    const size_t quarter = index % 4 == 0 ? 8 : 4 + index % 4;  // rounded / step is in (4, 8]
    for (void* block : c.large[index]) {
      std::free(block);
      c.stats.reserved -= static_cast<int64_t>(step * quarter);
    }
    c.large[index].clear();
  }
}

[[noreturn, gnu::cold]] void out_of_memory(const MemoryStats& stats, size_t bytes,
                                           int64_t limit = 0) {
  tell_refused(Device{}, bytes);
  throw OutOfMemory(text("out of memory on cpu: got a request for ", bytes, " bytes, with ",
                         stats.allocated, " bytes in use and ", stats.reserved, " bytes reserved",
                         limit > 0 ? text(" of ", limit, " allowed") : std::string(),
                         "; use a smaller batch or free tensors"));
}

void* allocate_large(size_t bytes) {
  Central& c = central();
  std::lock_guard lock(c.mutex);
  if (c.fail_in > 0 && --c.fail_in == 0) {
    out_of_memory(c.stats, bytes);
  }
  size_t rounded = 0;
  auto& list = c.large[large_class(bytes, rounded)];
  void* block = nullptr;
  if (!list.empty()) {
    block = list.back();
    list.pop_back();
  } else if (!(block = system_allocate(c, rounded))) {
    drop_large_blocks(c);
    if (!(block = system_allocate(c, rounded))) {
      out_of_memory(c.stats, bytes, c.limit);
    }
  }
  c.stats.allocated += static_cast<int64_t>(rounded);
  c.stats.peak = std::max(c.stats.peak, c.stats.allocated);
  if (has_memory_listener()) [[unlikely]] {
    tell_allocated(Device{}, block, bytes, rounded);
  }
  note_memory(c);
  return block;
}

void release_large(void* block, size_t bytes) noexcept {
  Central& c = central();
  std::lock_guard lock(c.mutex);
  size_t rounded = 0;
  const size_t index = large_class(bytes, rounded);
  c.stats.allocated -= static_cast<int64_t>(rounded);
  if (has_memory_listener()) [[unlikely]] {
    tell_released(Device{}, block);
  }
#ifdef BINADE_PLAIN_MALLOC
  std::free(block);
  c.stats.reserved -= static_cast<int64_t>(rounded);
  (void)index;
#else
  c.large[index].push_back(block);
#endif
  note_memory(c);
}

#ifndef BINADE_PLAIN_MALLOC
// Hands over a thread's magazines when it ends.
struct Flush {
  ~Flush() {
    std::lock_guard lock(central().mutex);
    for (size_t index = 0; index < kSmallClasses; ++index) {
      for (FreeBlock** list : {&thread_state.free[index], &thread_state.spare[index]}) {
        if (*list) {
          central().magazines[index].push_back(std::exchange(*list, nullptr));
        }
      }
      thread_state.count[index] = 0;
    }
  }
};

void* allocate_small(size_t bytes) {
  static thread_local Flush flush;
  const size_t index = (bytes + kLineBytes - 1) / kLineBytes;
  const size_t size = std::max<size_t>(index, 1) * kLineBytes;
  FreeBlock*& free = thread_state.free[index];
  free = std::exchange(thread_state.spare[index], nullptr);
  if (!free) {
    Central& c = central();
    std::lock_guard lock(c.mutex);
    if (auto& full = c.magazines[index]; !full.empty()) {
      free = full.back();
      full.pop_back();
    } else {
      auto* slab = static_cast<std::byte*>(system_allocate(c, kMagazineBlocks * size));
      if (!slab) {
        out_of_memory(c.stats, bytes);
      }
      for (size_t i = kMagazineBlocks; i-- > 0;) {
        free = new (slab + i * size) FreeBlock{free};
      }
    }
  }
  // A partly filled magazine (from an ended thread) counts as full.
  thread_state.count[index] = kMagazineBlocks - 1;
  return std::exchange(free, free->next);
}

void release_small(void* block, size_t bytes) noexcept {
  const size_t index = (bytes + kLineBytes - 1) / kLineBytes;
  if (thread_state.spare[index]) {
    std::lock_guard lock(central().mutex);
    central().magazines[index].push_back(thread_state.spare[index]);
  }
  thread_state.spare[index] = thread_state.free[index];
  thread_state.free[index] = new (block) FreeBlock{nullptr};
  thread_state.count[index] = 1;
}
#else
void* allocate_small(size_t bytes) {
  void* block = std::aligned_alloc(kLineBytes, (bytes + kLineBytes) / kLineBytes * kLineBytes);
  if (!block) {
    out_of_memory({}, bytes);
  }
  return block;
}
void release_small(void* block, size_t) noexcept { std::free(block); }
#endif

// Kernels get their workspaces from the same caches.
[[maybe_unused]] const bool kWorkspaceInstalled = [] {
  kernels::set_workspace_source(
      {[](Device device, size_t bytes) {
         return device.is_cpu() ? binade::allocate(bytes) : device_allocate(device, bytes);
       },
       [](Device device, void* block, size_t bytes) noexcept {
         device.is_cpu() ? binade::release(block, bytes) : device_release(device, block, bytes);
       }});
  return true;
}();

}  // namespace

[[gnu::noinline]] void* allocate_slow(size_t bytes) {
  return bytes > kSmallBytes ? allocate_large(bytes) : allocate_small(bytes);
}

[[gnu::noinline]] void release_slow(void* block, size_t bytes) noexcept {
  bytes > kSmallBytes ? release_large(block, bytes) : release_small(block, bytes);
}

}  // namespace detail

MemoryStats memory_stats() {
  std::lock_guard lock(detail::central().mutex);
  return detail::central().stats;
}

void reset_peak_memory() {
  std::lock_guard lock(detail::central().mutex);
  detail::central().stats.peak = detail::central().stats.allocated;
}

int64_t set_memory_limit(int64_t bytes) {
  check(bytes >= 0, "set_memory_limit: got ", bytes, " bytes, expected 0 (no limit) or more");
  std::lock_guard lock(detail::central().mutex);
  return std::exchange(detail::central().limit, bytes);
}

int64_t memory_limit() {
  std::lock_guard lock(detail::central().mutex);
  return detail::central().limit;
}

size_t allocated_bytes(Device device, size_t asked) {
  if (!device.is_cpu()) {
    constexpr size_t kStep = 512;  // CachingAllocator::kBlockStep
    return (std::max<size_t>(asked, 1) + kStep - 1) / kStep * kStep;
  }
  size_t rounded = 0;
  if (asked > detail::kSmallBytes) {
    detail::large_class(asked, rounded);
  }
  return rounded;
}

void empty_cache() {
  std::lock_guard lock(detail::central().mutex);
  detail::drop_large_blocks(detail::central());
}

void fail_allocation(int64_t n) {
  std::lock_guard lock(detail::central().mutex);
  detail::central().fail_in = n;
}

}  // namespace binade
