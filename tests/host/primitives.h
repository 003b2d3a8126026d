// Kernels that each test one primitive; primitives_test.cpp has the references.
#pragma once
#include <binade/kernels/host/primitives.h>

namespace binade::kernels::host {

// y[thread] of blocks of 64 threads.
void run_shuffles(Shuffle mode, int argument, int width, int* y);
void run_votes(unsigned mask, unsigned predicates, unsigned* ballot, int* any, int* all);
// fragment[lane * 4 + i] of a 32 x 8 tile: four matrices of 8 rows.
void run_load_matrix(const uint16_t* tile, bool transposed, uint32_t* fragment);
// a and b as registers per lane; d in and out.
void run_product(bool bf16, const uint32_t* a, const uint32_t* b, float* d);
// Copies 16 bytes of which `source_bytes` are read; also returns shared memory before the wait.
void run_copy(const unsigned char* source, int source_bytes, unsigned char* before,
              unsigned char* after);
struct AtomicResults {
  float f;
  double d;
  int i;
  unsigned u, highest, bits, swaps;
  unsigned long long l;
};
void run_atomics(dim3 grid, int threads, AtomicResults* results);
// y[linear thread of the grid] = linear thread of the block, from threadIdx.
void run_indices(dim3 grid, dim3 block, unsigned* y);
// Two groups of warps, each with its own barrier, pass values around `rounds` times.
void run_named_barriers(int rounds, int* y);
// Fails in thread 33 if asked to; else y[thread] = 1 + the neighbour's thread.
void run_maybe_failing(bool failing, int* y);
void run_nothing(const Grid& grid);
// Accesses of known patterns, for the access report.
enum class Pattern { coalesced, stride_two, vectors, column, padded_column, load_matrix };
void run_pattern(Pattern pattern, float* memory);

}  // namespace binade::kernels::host
