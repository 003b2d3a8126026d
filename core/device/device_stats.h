// Statistics and controls of a device's caching allocator.
#pragma once
#include <binade/core/tensor/source_line.h>
#include <binade/kernels/base/stream.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace binade {

struct DeviceMemoryStats {
  int64_t allocated = 0;           // bytes in live blocks, with rounding
  int64_t peak = 0;                // largest `allocated` since the last reset_peak_memory()
  int64_t reserved = 0;            // bytes taken from the device
  int64_t requests = 0;            // all, also those served from the cache
  int64_t device_allocations = 0;  // calls that reached the device: constant in a steady state
  int64_t device_frees = 0;
  int64_t flushes = 0;    // by empty_cache() or after running out of memory; each waits
  bool growable = false;  // segments grow by the driver's virtual memory
};
DeviceMemoryStats memory_stats(Device device);
void reset_peak_memory(Device device);

// Live bytes by module path (core/observe/label.h), largest first; "" means outside of modules.
struct LabelMemory {
  std::string label;
  int64_t bytes = 0;
};
std::vector<LabelMemory> memory_by_label(Device device);

// The last events of the allocator, oldest first; older ones are dropped.
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

// For tests: makes the n-th allocation from now (1 is the next) run out of memory; 0 turns it off.
void fail_allocation(Device device, int64_t n);

// Records that a stream other than that of the allocation uses the block. Once released, the block
// is not reused before the work that this stream has queued by then is done. A block released while
// another stream is current counts as used on that stream.
void device_record_use(Device device, void* block, kernels::StreamHandle stream);

}  // namespace binade
