// Kernels that synchronise, with planted mistakes: through shared memory, between blocks, in warps;
// and the rules that a correct kernel never breaks.
#include <tests/host/host_launch.h>
#include <tests/host/planted_bugs.h>

#include <stdexcept>
#include <vector>

namespace binade::kernels::host {
namespace {

// Cross entropy, in place: subtracts the target's value from the row, adds up the targets ---------

struct TargetShared {
  float target;
};

template <Planted bug>
__global__ void targets_kernel(float* x, const int* targets, float* total, int cols) {
  auto& shared = dev::shared_mem<TargetShared>();
  float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  const int target = targets[blockIdx.x];
  if (threadIdx.x == 0) {
    shared.target = row[target];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    row[i] = row[i] * 2;
  }
  // The thread that reads the target again is neither the first nor the last to run.
  if (threadIdx.x == 64) {
    const float value = bug == Planted::overwritten_before_read ? row[target] : shared.target;
    if (bug == Planted::total_without_atomic) {
      *total += value;
    } else {
      atomicAdd(total, value);
    }
  }
}

template <Planted bug>
bool run_cross_entropy() {
  const int rows = 4, cols = 128;
  std::vector<float> x(rows * cols, 1.0f);
  // In every order of the warps some of these are already overwritten.
  std::vector<int> targets = {0, 127, 1, 64};
  std::vector<float> total(1);
  run({"targets_kernel", rows, 128, sizeof(TargetShared)}, targets_kernel<bug>, x.data(),
      targets.data(), total.data(), cols);
  return total[0] == 4;
}

// Ticket: the last block sums what all blocks wrote ----------------------------------------------

struct TicketShared {
  bool last;
};

template <Planted bug>
__global__ void ticket_kernel(float* parts, unsigned* ticket, float* total, bool every_thread) {
  auto& shared = dev::shared_mem<TicketShared>();
  parts[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
  if (bug != Planted::ticket_without_release && every_thread) {
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    if (bug != Planted::ticket_without_release && !every_thread) {
      __threadfence();
    }
    shared.last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    if (bug != Planted::ticket_without_acquire && !every_thread) {
      __threadfence();
    }
  }
  __syncthreads();
  if (shared.last) {
    if (bug != Planted::ticket_without_acquire && every_thread) {
      __threadfence();
    }
    if (threadIdx.x == 0) {
      for (unsigned i = 0; i < gridDim.x * blockDim.x; ++i) {
        *total += parts[i];
      }
    }
  }
}

template <Planted bug>
bool run_ticket() {
  for (const bool every_thread : {false, true}) {
    std::vector<float> parts(5 * 64), total(1);
    std::vector<unsigned> ticket(1);
    run({"ticket_kernel", 5, 64, sizeof(TicketShared)}, ticket_kernel<bug>, parts.data(),
        ticket.data(), total.data(), every_thread);
    if (total[0] != 5 * 64) {
      return false;
    }
  }
  return true;
}

// Warps: collectives of all and of some lanes, and exchanges through shared memory ---------------

struct WarpShared {
  int value[64];
  int group[64];
};

template <Planted bug>
__global__ void warps_kernel(int* y) {
  auto& shared = dev::shared_mem<WarpShared>();
  const int thread = threadIdx.x, lane = thread % 32;
  int sum = lane;
  if (bug == Planted::exited_lane_in_mask && lane == 7) {
    return;
  }
  if (bug == Planted::full_mask_in_half_warp && lane < 16) {
    sum += __shfl_down_sync(~0u, lane, 8);
  }
  if (bug == Planted::two_call_sites) {
    if (lane < 16) {
      sum += __shfl_xor_sync(~0u, lane, 1);
    } else {
      sum += __shfl_xor_sync(~0u, lane, 2);
    }
  }
  if (lane < 16) {
    sum += __shfl_xor_sync(0xffffu, lane, bug == Planted::lane_outside_mask ? 16 : 8);
  } else {
    sum += __shfl_xor_sync(bug == Planted::lane_not_in_mask ? 0xffffu : 0xffff0000u, lane, 8);
  }
  shared.value[thread] = sum;
  if (bug == Planted::shuffle_orders_nothing) {
    sum += __shfl_sync(~0u, 0, 0);
  } else {
    __syncwarp();
  }
  sum = shared.value[thread ^ 1];
  // Both warps meet at barrier 1: an order for 64 threads of 96.
  if (thread < 64) {
    shared.group[thread] = sum;
    if (bug != Planted::no_named_barrier) {
      dev::named_barrier(1, bug == Planted::barrier_count_not_warps ? 63 : 64);
    }
    y[thread] = shared.group[63 - thread];
  }
}

template <Planted bug>
bool run_warps() {
  std::vector<int> y(64);
  run({"warps_kernel", 1, 64, sizeof(WarpShared)}, warps_kernel<bug>, y.data());
  for (int i = 0; i < 64; ++i) {
    const int lane = ((63 - i) ^ 1) % 32;
    if (y[i] != lane + (lane ^ 8)) {
      return false;
    }
  }
  return true;
}

// Bytes: neighbours that belong to different threads ---------------------------------------------

struct ByteShared {
  unsigned char value[64];
};

template <Planted bug>
__global__ void bytes_kernel(unsigned char* y) {
  auto& shared = dev::shared_mem<ByteShared>();
  const int thread = threadIdx.x;
  shared.value[thread] = static_cast<unsigned char>(thread);
  y[thread] = static_cast<unsigned char>(thread);
  if (bug == Planted::byte_race && thread == 40) {
    y[41] = 41;
  }
  __syncthreads();
  if (thread < 16) {
    const unsigned all = *reinterpret_cast<const unsigned*>(&shared.value[4 * thread]);
    y[4 * thread + 3] = static_cast<unsigned char>(all >> 24);
  }
}

template <Planted bug>
bool run_bytes() {
  std::vector<unsigned char> y(64);
  run({"bytes_kernel", 1, 64, sizeof(ByteShared)}, bytes_kernel<bug>, y.data());
  for (int i = 0; i < 64; ++i) {
    if (y[i] != i) {
      return false;
    }
  }
  return true;
}

// Rules: errors that no correct kernel makes -----------------------------------------------------

struct RuleShared {
  alignas(16) half row[64];
};

void nothing_kernel() {}

// A barrier and a vote at one line, which two branches of a kernel reach by calls of their own.
__device__ __attribute__((noinline)) void helper_with_barrier() { __syncthreads(); }
__device__ __attribute__((noinline)) void helper_with_vote() { __any_sync(~0u, 1); }

template <Planted bug>
__global__ void rules_kernel(half* global, int* y) {
  auto& shared = dev::shared_mem<RuleShared>();
  const int thread = threadIdx.x;
  uint32_t fragment[4];
  switch (bug) {
    case Planted::mask_beyond_block: __syncwarp(thread < 32 ? ~0u : 0x1ffu); break;
    case Planted::barrier_in_branch:
      if (thread < 20) {
        __syncthreads();
      }
      break;
    case Planted::two_barriers:
      if (thread < 20) {
        __syncthreads();
      } else {
        __syncthreads();
      }
      break;
    case Planted::two_calls_of_a_barrier:
      if (thread < 20) {
        helper_with_barrier();
      } else {
        helper_with_barrier();
      }
      break;
    case Planted::two_calls_of_a_vote:
      if (thread % 2 == 0) {
        helper_with_vote();
      } else {
        helper_with_vote();
      }
      break;
    case Planted::barrier_after_exit:
    case Planted::exit_before_barrier:
      if (thread == (bug == Planted::barrier_after_exit ? 0 : 39)) {
        return;
      }
      __syncthreads();
      break;
    case Planted::barrier_counts_differ: dev::named_barrier(2, thread < 32 ? 64 : 32); break;
    case Planted::deadlock: dev::named_barrier(3 + thread / 32, 64); break;
    case Planted::load_matrix_of_global:
      if (thread < 32) {
        dev::ldmatrix_x4(fragment, global);
      }
      break;
    case Planted::copy_to_global: dev::cp_async16(global, global); break;
    case Planted::nested_launch: run({"nothing_kernel", 1, 1, 0}, nothing_kernel); break;
    case Planted::exception: throw std::runtime_error("thrown in a kernel");
    default: break;
  }
  shared.row[thread] = half(1.0f);
  y[blockIdx.x * blockDim.x + thread] = 1;
}

template <Planted bug>
bool run_rules() {
  std::vector<half> global(64);
  std::vector<int> y(80);
  run({"rules_kernel", 2, 40, sizeof(RuleShared)}, rules_kernel<bug>, global.data(), y.data());
  return y[79] == 1;
}

#define ENTRY(kernel, bug) \
  { PlantedKernel::kernel, Planted::bug, run_##kernel<Planted::bug> }
const PlantedEntry kEntries[] = {
    ENTRY(cross_entropy, none),
    ENTRY(cross_entropy, overwritten_before_read),
    ENTRY(cross_entropy, total_without_atomic),
    ENTRY(ticket, none),
    ENTRY(ticket, ticket_without_release),
    ENTRY(ticket, ticket_without_acquire),
    ENTRY(warps, none),
    ENTRY(warps, exited_lane_in_mask),
    ENTRY(warps, full_mask_in_half_warp),
    ENTRY(warps, two_call_sites),
    ENTRY(warps, lane_outside_mask),
    ENTRY(warps, lane_not_in_mask),
    ENTRY(warps, shuffle_orders_nothing),
    ENTRY(warps, no_named_barrier),
    ENTRY(warps, barrier_count_not_warps),
    ENTRY(bytes, none),
    ENTRY(bytes, byte_race),
    ENTRY(rules, none),
    ENTRY(rules, mask_beyond_block),
    ENTRY(rules, barrier_in_branch),
    ENTRY(rules, two_barriers),
    ENTRY(rules, two_calls_of_a_barrier),
    ENTRY(rules, two_calls_of_a_vote),
    ENTRY(rules, barrier_after_exit),
    ENTRY(rules, exit_before_barrier),
    ENTRY(rules, barrier_counts_differ),
    ENTRY(rules, deadlock),
    ENTRY(rules, load_matrix_of_global),
    ENTRY(rules, copy_to_global),
    ENTRY(rules, nested_launch),
    ENTRY(rules, exception),
};
#undef ENTRY

}  // namespace

std::span<const PlantedEntry> planted_sync() { return kEntries; }

}  // namespace binade::kernels::host
