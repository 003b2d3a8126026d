// Sums over the columns of a matrix by blocks of kColumns x kParts threads: lanes across columns,
// so that accesses are coalesced, and warps across rows, merged in shared memory in a fixed order.
#pragma once
#include <binade/kernels/cuda/block_reduce.cuh>

namespace binade::kernels::dev {

inline constexpr int kColumns = 32, kParts = 16;

template <class V>
struct ColumnSmem {
  V part[kParts][kColumns];
};

// Adds up the values of all threads of this column; the threads with y = 0 get the sum. The whole
// block must call it.
template <class V>
__device__ __forceinline__ V add_parts(V value, ColumnSmem<V>& memory) {
  memory.part[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  for (int i = 1; i < kParts && threadIdx.y == 0; ++i) {
    value = value.merge(memory.part[i][threadIdx.x]);
  }
  __syncthreads();  // before the memory is used again
  return value;
}

}  // namespace binade::kernels::dev
