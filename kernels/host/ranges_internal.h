// The table of named ranges, for the sources of the executor.
#pragma once
#include <binade/kernels/host/executor_internal.h>
#include <binade/kernels/host/named_ranges.h>

namespace binade::kernels::host {

struct RangeState {
  NamedRange range;
  uintptr_t begin = 0, end = 0;   // of the range
  uintptr_t low = 0, high = 0;    // with its guards
  std::vector<uint64_t> written;  // a bit per byte; empty: all of them are
  int64_t row_bytes = 0, pitch_bytes = 0;
  bool kernel_wrote = false;  // to a range that is read-only

  bool all_written(uintptr_t address, size_t bytes) const;
  void mark(uintptr_t address, size_t bytes, bool is_written);
};

// In the order of their addresses.
std::vector<RangeState>& range_table();
// The range of the last access in the race build, where one thread at a time runs kernels; null
// when the table has changed.
inline RangeState* recent_range = nullptr;
// The range that has the address in it or in its guards; null if there is none.
RangeState* find_range(const void* address);
FoundElement element_in(const RangeState& state, const void* address);

}  // namespace binade::kernels::host
