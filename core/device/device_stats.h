// What the caching allocator of a device holds, and its levers.
#pragma once
#include <binade/core/tensor/source_line.h>
#include <binade/kernels/base/stream.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace binade {

struct DeviceMemoryStats {
  int64_t allocated = 0;           // bytes in live blocks, rounded as they are held
  int64_t peak = 0;                // largest `allocated` since the last reset_peak_memory()
  int64_t reserved = 0;            // bytes taken from the device
  int64_t requests = 0;            // served from the cache or not
  int64_t device_allocations = 0;  // that reached the device: constant in a steady state
  int64_t device_frees = 0;
  int64_t flushes = 0;    // empty_cache() and what running out of memory caused; each one waits
  bool growable = false;  // segments grow through the driver's virtual memory
};
DeviceMemoryStats memory_stats(Device device);
void reset_peak_memory(Device device);

// Live bytes by module path (core/observe/label.h), largest first; "" is code outside of modules.
struct LabelMemory {
  std::string label;
  int64_t bytes = 0;
};
std::vector<LabelMemory> memory_by_label(Device device);

// The last events of the allocator, oldest first; a bounded number is kept.
struct MemoryEvent {
  enum Kind : uint8_t { allocate, release, grow, shrink, flush, out_of_memory };
  Kind kind = allocate;
  uint32_t label = 0;
  int64_t time_ns = 0;  // of the steady clock
  uint64_t address = 0;
  int64_t bytes = 0;
  kernels::StreamHandle stream = nullptr;
};
std::vector<MemoryEvent> memory_timeline(Device device);

// Waits for the device, then returns unused memory to it.
void empty_cache(Device device, SourceLine where = SourceLine::here());

// For tests: the n-th allocation from now (1 is the next) runs out of memory; 0 turns it off.
void fail_allocation(Device device, int64_t n);

// The block is in use on a stream other than the one that was current when it was allocated: once
// released it waits for the work that this stream has then. Blocks released while another stream
// is current count as used there.
void device_record_use(Device device, void* block, kernels::StreamHandle stream);

}  // namespace binade
