// Matrices whose rows fit into registers. A team of threads (1 to 32 lanes of a warp, or several
// warps) holds a row, kRowValues elements per thread, so that each row is read once, however often
// the arithmetic uses it. A block has one team or several. If all rows are aligned and their length
// allows it, accesses are vectors of 16 bytes, else neighbouring lanes take neighbouring elements.
#pragma once
#include <binade/kernels/cuda/block_reduce.cuh>
#include <binade/kernels/cuda/vector.cuh>

#include <algorithm>

namespace binade::kernels {

// The number of elements of T that a thread holds.
template <class T>
inline constexpr int kRowValues = sizeof(T) == 8 ? 4 : 8;

// How the rows of a matrix are distributed over teams.
struct RowPlan {
  int64_t rows = 0;
  int cols = 0;
  int lanes = 1;  // per team: a power of two up to 32, or a multiple of 32
  int threads = 32;
  bool vectors = false;
  unsigned blocks = 1;

  BINADE_HD int teams() const { return threads / lanes; }
};

template <class T>
constexpr bool fits_team(int64_t cols, int most_lanes) {
  return cols <= int64_t{most_lanes} * kRowValues<T>;
}

// The plan for rows that fit a team. `arrays` are the first elements of matrices of T whose rows
// lie `stride` elements apart (null: no such matrix). most_blocks may be fewer than the rows need.
template <class T, class... P>
RowPlan row_plan(int64_t rows, int64_t cols, int64_t stride, int64_t most_blocks,
                 const P*... arrays) {
  constexpr int kVector = dev::kVectorOf<T>, kThreads = 256;
  RowPlan plan{.rows = rows, .cols = static_cast<int>(cols)};
  const int needed = static_cast<int>(ceil_div(cols, kRowValues<T>));
  plan.lanes = needed <= 32 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(needed)))
                            : (needed + 31) / 32 * 32;
  const int64_t fitting = plan.lanes < kThreads ? kThreads / plan.lanes : 1;
  const int64_t wanted = ceil_div(std::min(rows, fitting) * plan.lanes, 32) * 32;
  plan.threads = plan.lanes > 32 ? static_cast<int>(std::min(rows, fitting)) * plan.lanes
                                 : static_cast<int>(wanted);
  const bool whole = cols % kVector == 0 && stride % kVector == 0;
  plan.vectors = whole && ((reinterpret_cast<uintptr_t>(arrays) % 16 == 0) && ...);
  plan.blocks = static_cast<unsigned>(std::min(ceil_div(rows, plan.teams()), most_blocks));
  return plan;
}

namespace dev {

// Shared memory of team reductions of V. Two halves take turns, so that one barrier each is enough.
template <class V>
struct TeamMemory {
  V warp[2][32];
};

// This thread is lane `lane` of the team that holds row first_row and then every `step`-th row.
struct Team {
  int lanes, lane, index;
  int phase = 0;

  __device__ explicit Team(const RowPlan& plan)
      : lanes(plan.lanes),
        lane(static_cast<int>(threadIdx.x) % plan.lanes),
        index(static_cast<int>(threadIdx.x) / plan.lanes) {}

  // True if any thread of the warp votes true, or any thread of the block if a team is larger than
  // a warp. The whole block must call it.
  __device__ __forceinline__ bool any(bool vote, TeamMemory<int>& memory) {
    const bool in_warp = __any_sync(~0u, vote) != 0;
    if (lanes <= 32) {
      return in_warp;
    }
    int(&warp)[32] = memory.warp[phase];
    phase ^= 1;
    if (threadIdx.x % 32 == 0) {
      warp[threadIdx.x / 32] = in_warp;
    }
    __syncthreads();
    const unsigned lane = threadIdx.x % 32;
    return __any_sync(~0u, lane < blockDim.x / 32 && warp[lane]) != 0;
  }
  // Reduces over the team. The whole block must call it; every thread gets the result of its team.
  template <class Op, class V>
  __device__ __forceinline__ V reduce(V value, TeamMemory<V>& memory) {
    for (int offset = 1; offset < lanes && offset < 32; offset *= 2) {
      const V other = shuffle_xor(value, offset);
      value = threadIdx.x & static_cast<unsigned>(offset) ? Op::combine(other, value)
                                                          : Op::combine(value, other);
    }
    if (lanes > 32) {
      V(&warp)[32] = memory.warp[phase];
      phase ^= 1;
      if (threadIdx.x % 32 == 0) {
        warp[threadIdx.x / 32] = value;
      }
      __syncthreads();
      const int first = index * (lanes / 32);
      value = warp[first];
      for (int i = 1; i < lanes / 32; ++i) {
        value = Op::combine(value, warp[first + i]);
      }
    }
    return value;
  }
};

// The columns of a row that a thread holds.
template <class T>
struct RowSlots {
  static constexpr int kValues = kRowValues<T>, kVector = kVectorOf<T>;
  int cols, lanes, lane;  // a team beyond the last row has no columns
  bool vectors;

  __device__ RowSlots(const RowPlan& plan, const Team& team, bool valid)
      : cols(valid ? plan.cols : 0), lanes(plan.lanes), lane(team.lane), vectors(plan.vectors) {}

  __device__ RowSlots(int cols, int lanes, int lane, bool vectors)
      : cols(cols), lanes(lanes), lane(lane), vectors(vectors) {}

  // The column of the thread's i-th element; the element exists if this is less than cols.
  __device__ __forceinline__ int column(int i) const {
    return vectors ? (i / kVector * lanes + lane) * kVector + i % kVector : i * lanes + lane;
  }
  __device__ __forceinline__ bool holds(int i) const { return column(i) < cols; }

  // Loads this thread's elements of a row of U, which is T or its compute type; `fill` beyond the
  // row.
  template <class U, class C>
  __device__ __forceinline__ void load(const U* row, C fill, C (&values)[kValues]) const {
    if (vectors) {
#pragma unroll
      for (int i = 0; i < kValues; i += kVector) {
        C part[kVector];
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          part[j] = fill;
        }
        if (column(i) < cols) {
          load_as(row + column(i), part);
        }
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          values[i + j] = part[j];
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < kValues; ++i) {
        const int at = i * lanes + lane;
        values[i] = at < cols ? static_cast<C>(row[at]) : fill;
      }
    }
  }

  template <class U, class C>
  __device__ __forceinline__ void store(U* row, const C (&values)[kValues]) const {
    if (vectors) {
#pragma unroll
      for (int i = 0; i < kValues; i += kVector) {
        C part[kVector];
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          part[j] = values[i + j];
        }
        if (column(i) < cols) {
          store_from(row + column(i), part);
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < kValues; ++i) {
        const int at = i * lanes + lane;
        if (at < cols) {
          row[at] = static_cast<U>(values[i]);
        }
      }
    }
  }
};

// exp in the precision that a result of type T needs.
template <class T>
__device__ __forceinline__ Compute<T> exp_for(Compute<T> x) {
  if constexpr (sizeof(T) == 2) {
    return fast_exp(x);
  } else {
    return std::exp(x);
  }
}

// Adds the N values of a vector to a softmax denominator.
template <class T, class C, int N>
__device__ __forceinline__ MaxSum<C> add_exponentials(const MaxSum<C>& before,
                                                      const C (&values)[N]) {
  C top = before.max;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    top = Max::combine(top, values[i]);
  }
  if (top == -std::numeric_limits<C>::infinity()) {
    return before;  // all minus infinity so far: exp(-inf - -inf) would be NaN
  }
  C sum = before.max == top ? before.sum : before.sum * exp_for<T>(before.max - top);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    sum += exp_for<T>(values[i] - top);
  }
  return {top, sum};
}

}  // namespace dev
}  // namespace binade::kernels
