// Host memory for tensors, graph nodes and workspaces: a caching allocator.
//
// Blocks up to 1 KiB come in 64-byte classes from two magazines per thread and class (Bonwick and
// Adams, "Magazines and Vmem", 2001), so an allocation is a few instructions; larger blocks come
// from locked lists, four classes per doubling. Any thread may free a block. Freed memory is kept
// until empty_cache(). With AddressSanitizer every block comes from malloc, so that it checks all
// of them.
#pragma once
#include <binade/core/device/thread_state.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define BINADE_PLAIN_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BINADE_PLAIN_MALLOC 1
#endif
#endif

namespace binade {

namespace detail {

void* allocate_slow(size_t bytes);
void release_slow(void* block, size_t bytes) noexcept;

}  // namespace detail

// 64-byte aligned, uninitialised. Throws OutOfMemory. Pass the same size to release().
inline void* allocate(size_t bytes) {
#ifndef BINADE_PLAIN_MALLOC
  auto& state = detail::thread_state;
  const size_t index = (bytes + detail::kLineBytes - 1) / detail::kLineBytes;
  if (bytes <= detail::kSmallBytes && state.free[index]) [[likely]] {
    detail::FreeBlock* block = state.free[index];
    state.free[index] = block->next;
    --state.count[index];
    return block;
  }
#endif
  return detail::allocate_slow(bytes);
}

inline void release(void* block, size_t bytes) noexcept {
#ifndef BINADE_PLAIN_MALLOC
  auto& state = detail::thread_state;
  const size_t index = (bytes + detail::kLineBytes - 1) / detail::kLineBytes;
  if (bytes <= detail::kSmallBytes && state.count[index] < detail::kMagazineBlocks) [[likely]] {
    state.free[index] = new (block) detail::FreeBlock{state.free[index]};
    ++state.count[index];
    return;
  }
#endif
  detail::release_slow(block, bytes);
}

struct MemoryStats {
  int64_t allocated = 0;           // bytes in live blocks above 1 KiB
  int64_t reserved = 0;            // bytes taken from the system, including small blocks and caches
  int64_t peak = 0;                // largest `allocated` since the last reset_peak_memory()
  int64_t system_allocations = 0;  // calls that reached the system: constant in a steady state
};
MemoryStats memory_stats();
void reset_peak_memory();

// Returns cached large blocks to the system.
void empty_cache();

// For tests: makes the n-th allocation above 1 KiB from now (1 is the next) throw OutOfMemory; 0
// turns it off.
void fail_allocation(int64_t n);

}  // namespace binade
