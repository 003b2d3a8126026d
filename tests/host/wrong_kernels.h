// Small kernels with one mistake each, on named memory: what the executor must say about them.
#pragma once
#include <binade/kernels/host/findings.h>
#include <binade/kernels/host/named_ranges.h>

#include <vector>

namespace binade::kernels::host {

enum class Wrong {
  none,
  neighbour_without_barrier,  // a store, and a load of another thread's element
  neighbour_without_syncwarp,
  reused_without_barrier,
  histogram_without_atomic,
  stencil_in_place,
  same_value,
  last_value,  // different values to one address
  past_end,
  past_shared_end,
  padding,
  into_input,
  accumulates_into_output,
  never_written,
  read_before_store,  // every thread reads before anyone stores
  polls_flag,
  endless,
  misaligned,
  wild_pointer,
  member_index,
  overflow,
  ended_before_barrier,
  float_atomics,
  waits_for_another_warp,  // right: an atomic flag between two warps
};

// Runs the kernel on 64 threads a block: x is an input of 64 floats, y an output of 64 floats, and
// matrix an input of 8 rows of 6 with a leading dimension of 8.
struct WrongBuffers {
  GuardedBuffer x, y, matrix;
  WrongBuffers();
  void reset();
};
void run_wrong(Wrong wrong, WrongBuffers& buffers);
// The line before the kernel's own; the tests count from there.
int line_before(Wrong wrong);

}  // namespace binade::kernels::host
