// MemoryListener: sees every block above 1 KiB that an allocator gives out, of the host and of
// devices. MemoryTracker and the forecast of a step are built on it. Without one an allocation pays
// for one test of a counter.
#pragma once
#include <binade/kernels/base/device.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace binade {

// Calls come one at a time, on any thread, from inside the allocator, so a listener must not
// allocate tensors.
class MemoryListener {
 public:
  virtual ~MemoryListener() = default;
  // `asked` bytes were requested; the block takes `bytes`.
  virtual void allocated(Device device, const void* block, size_t asked, size_t bytes) noexcept = 0;
  virtual void released(Device device, const void* block) noexcept = 0;
  // The request failed; the allocator throws OutOfMemory after this call.
  virtual void refused(Device device, size_t asked) noexcept = 0;
};

// There may be several listeners. When remove returns, no thread is in a call of the listener.
void add_memory_listener(MemoryListener& listener);
void remove_memory_listener(MemoryListener& listener);

// The bytes that the allocator of a device takes for a request.
size_t allocated_bytes(Device device, size_t asked);

namespace detail {

extern std::atomic<int> memory_listeners;
void tell_allocated(Device device, const void* block, size_t asked, size_t bytes) noexcept;
void tell_released(Device device, const void* block) noexcept;
void tell_refused(Device device, size_t asked) noexcept;
inline bool has_memory_listener() { return memory_listeners.load(std::memory_order_relaxed) > 0; }

}  // namespace detail
}  // namespace binade
