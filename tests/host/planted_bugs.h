// Kernels that are right, and the same kernels with one mistake each.
#pragma once
#include <span>

namespace binade::kernels::host {

enum class Planted {
  none,  // in every kernel
  // Memory.
  vector_past_end,
  epilogue_past_row,
  copy_source_past_end,
  shared_past_struct,
  shared_past_member,
  misaligned_vector,
  atomic_past_end,
  // Order within a block.
  no_barrier_before_read,
  no_barrier_before_reuse,
  no_barrier_before_stage,
  no_barrier_after_wait,
  last_stage_not_waited,
  not_transposed,
  overwritten_before_read,
  uninitialised_shared,
  shuffle_orders_nothing,
  byte_race,
  no_named_barrier,
  // Order between blocks.
  total_without_atomic,
  ticket_without_release,
  ticket_without_acquire,
  // Warps and barriers.
  full_mask_in_half_warp,
  lane_outside_mask,
  lane_not_in_mask,
  two_call_sites,
  exited_lane_in_mask,
  mask_beyond_block,
  barrier_in_branch,
  two_barriers,
  two_calls_of_a_barrier,
  two_calls_of_a_vote,
  barrier_after_exit,
  exit_before_barrier,
  barrier_counts_differ,
  barrier_count_not_warps,
  deadlock,
  // Arguments.
  misaligned_load_matrix,
  load_matrix_of_global,
  misaligned_copy,
  copy_to_global,
  small_shared_memory,
  nested_launch,
  exception,
};

enum class PlantedKernel {
  pointwise,
  norm,
  gemm,
  cross_entropy,
  ticket,
  warps,
  bytes,
  rules,
};

// Runs a kernel; returns true if its numbers are right.
struct PlantedEntry {
  PlantedKernel kernel;
  Planted bug;
  bool (*run)();
};
std::span<const PlantedEntry> planted_math();  // pointwise, norm, gemm
std::span<const PlantedEntry> planted_sync();  // the others

}  // namespace binade::kernels::host
