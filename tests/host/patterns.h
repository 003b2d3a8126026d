// Accesses of known cost, for the access report.
#pragma once
#include <binade/kernels/host/executor.h>

namespace binade::kernels::host {

enum class AccessPattern {
  coalesced,
  stride_two,
  stride_row,
  broadcast,
  shifted,
  vectors,
  reversed,
  halves,
  bytes,
  half_of_the_lanes,
  doubles_of_rows,
  two_warps,
  shared_column,
  shared_padded_column,
  shared_stride_two,
  shared_broadcast,
  shared_vectors,
  shared_doubles,
  atomics_on_one,
  atomics_on_each,
  atomics_on_four,
  shared_atomics_on_two,
};
// Reads (or changes) `memory`, 4096 bytes that begin at a multiple of 256; the kernel writes 64
// floats to `out`.
void run_access_pattern(AccessPattern pattern, void* memory, float* out);
// y[i] = x[i] on blocks of 32, with arguments in a struct, a table of constants and a local array.
void run_with_arguments(const float* x, float* y, int blocks);
// A branch that 8 of 32 lanes take; returns its line.
int run_divergent(float* y);
// Two blocks of 48 threads at a barrier, then 16 lanes of each that shuffle three times; returns
// the line of the barrier, four lines before the shuffle. Writes 32 numbers.
int run_together(int* y);

}  // namespace binade::kernels::host
