// The kernels of all CUDA reductions, for any reducer (reducers.cuh). Kept and reduced dimensions
// are merged separately (StridedLoop). An output is one position of the kept dimensions; its terms
// are the sequence over the reduced ones.
//
// reduce_rows_kernel: adjacent threads take adjacent terms, for layouts whose reduced dimensions
// are innermost. One warp per output, or one block if the sequence is long and outputs are few;
// loads of 16 bytes if the terms are contiguous. reduce_columns_kernel: adjacent threads take
// adjacent outputs, if a kept dimension is innermost or the sequence is short. A block has lanes x
// rows threads: a lane has one output or a vector of them; the rows split the sequence and are
// combined as a tree in shared memory. reduce_partials_kernel: if there are too few outputs to fill
// the device, the sequence is split into chunks, whose states go through workspace to this second
// launch, one warp per output.
//
// All splits depend on the shape only, and every thread accumulates sums in levels
// (accumulator.cuh), so that errors stay small.
#pragma once
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/reduce/reducers.cuh>

namespace binade::kernels::reduction {

inline constexpr int kThreads = 256;
inline constexpr int64_t kEnoughBlocks = 1024;  // more blocks do not help
inline constexpr int64_t kLongRow = 1024;       // a block per output from here on, if they are few
inline constexpr int64_t kShortRow = 16;        // a thread per output below

struct ReducePlan {
  StridedIndex<3> kept;     // x, y, aux: in units of `columns` outputs
  StridedIndex<1> reduced;  // x: in units of `terms` terms; its data is not used
  int64_t units, length;    // of outputs, of the sequence
  int64_t chunks, chunk;    // parts of the sequence, and the units in each but the last
  int64_t y_stride;         // bytes between neighbouring outputs of a unit
  int32_t terms, columns;   // in a unit of the sequence, in a unit of outputs
  int32_t lanes;            // threads of an output (rows), or across outputs (columns)
  bool contiguous;          // the sequence is one contiguous range
  DType out;
  Reading reading;
  std::byte* partial;  // if set, the states of the chunks go here instead of results
};

template <class C>
__device__ __forceinline__ void store_as(std::byte* y, DType out, C value) {
  if constexpr (std::is_same_v<C, float>) {
    if (out == DType::f16) {
      *reinterpret_cast<half*>(y) = half(value);
      return;
    }
    if (out == DType::bf16) {
      *reinterpret_cast<bfloat16*>(y) = bfloat16(value);
      return;
    }
  }
  if constexpr (std::is_same_v<C, int32_t>) {
    if (out == DType::u8 || out == DType::boolean) {
      *reinterpret_cast<uint8_t*>(y) = static_cast<uint8_t>(value);
      return;
    }
  }
  *reinterpret_cast<C*>(y) = value;
}

// Stores state number `index` if this is the first of two passes, else the final results.
template <class R, class C>
__device__ __forceinline__ void store_result(const ReducePlan& p, int64_t index, std::byte* y,
                                             std::byte* aux,
                                             const typename R::template State<C>& state) {
  if (p.partial) {
    reinterpret_cast<typename R::template State<C>*>(p.partial)[index] = state;
    return;
  }
  C value;
  typename R::template Aux<C> second{};
  R::finish(state, p.reading, value, second);
  if (y) {
    store_as(y, p.out, value);
  }
  if constexpr (R::kAux) {
    if (aux) {
      *reinterpret_cast<typename R::template Aux<C>*>(aux) = second;
    }
  }
}

// The type of results of T. Integers wrap, so their sums and products are unsigned; sums have 64
// bits.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, uint8_t>, int32_t,
                                std::conditional_t<std::is_integral_v<T>, T, Compute<T>>>;

template <class R, class C>
struct RowsMemory {
  dev::BlockReduceMemory<typename R::template State<C>, kThreads> block;
};

// Terms in flight per thread: with a state of several values more than one would spill.
template <class R, class C>
inline constexpr int kInFlightOf = std::is_arithmetic_v<typename R::template State<C>> ? 4 : 1;

// p.lanes threads (a warp or the block) reduce the sequence of an output, or one chunk of it.
template <class R, class T, class C>
__global__ void __launch_bounds__(kThreads, 2)
    reduce_rows_kernel(const __grid_constant__ ReducePlan p) {
  using State = typename R::template State<C>;
  constexpr int kVector = dev::kVectorOf<T>, kUnroll = kInFlightOf<R, C>;
  auto& memory = dev::shared_mem<RowsMemory<R, C>>();
  const int lanes = p.lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t groups = static_cast<int64_t>(gridDim.x) * (kThreads / lanes);
  const int64_t group = static_cast<int64_t>(blockIdx.x) * (kThreads / lanes) + threadIdx.x / lanes;
  const int64_t tasks = p.units * p.chunks;
  // All threads of the block make the same number of rounds, because the loop has barriers.
  for (int64_t first = 0; first < tasks; first += groups) {
    const int64_t task = first + group;
    const bool active = task < tasks;
    const int64_t unit = (active ? task : 0) / p.chunks;
    const int64_t begin = ((active ? task : 0) - unit * p.chunks) * p.chunk;
    int64_t end = begin + p.chunk < p.length ? begin + p.chunk : p.length;
    end = active ? end : begin;
    std::byte* at[3];
    p.kept.locate(unit, at);
    dev::Accumulator<R, C, 1> sum;
    if (p.contiguous) {
      const T* row = reinterpret_cast<const T*>(at[0]) + begin;
      const auto span = dev::vector_span<kVector>(end - begin, row);
      dev::for_each_vector<kVector, kUnroll>(span, lane, lanes, [&](auto width, int64_t i) {
        C values[decltype(width)::value];
        dev::load_as(row + i, values);
        const State state[1] = {R::template of<T>(values, p.reading.term, begin + i)};
        sum.add(state);
      });
    } else if (p.terms == 1) {
#pragma unroll kUnroll
      for (int64_t i = begin + lane; i < end; i += lanes) {
        std::byte* term[1] = {at[0]};
        p.reduced.advance(i, term);
        const C value[1] = {static_cast<C>(*reinterpret_cast<const T*>(term[0]))};
        const State state[1] = {R::template of<T>(value, p.reading.term, i)};
        sum.add(state);
      }
    } else {
      for (int64_t i = begin + lane; i < end; i += lanes) {
        std::byte* term[1] = {at[0]};
        p.reduced.advance(i, term);
        C values[kVector];
        dev::load_as(reinterpret_cast<const T*>(term[0]), values);
        const State state[1] = {R::template of<T>(values, p.reading.term, i * kVector)};
        sum.add(state);
      }
    }
    const State total = lanes == 32 ? dev::warp_reduce<R>(sum.total(0))
                                    : dev::block_reduce<R>(sum.total(0), memory.block);
    if (active && lane == 0) {
      store_result<R, C>(p, task, at[1], at[2], total);
    }
  }
}

template <class R, class C, int kColumns>
struct ColumnsMemory {
  typename R::template State<C> value[kColumns][kThreads];
};

// p.lanes adjacent units of outputs side by side; kThreads / p.lanes rows split the sequence.
template <class R, class T, class C, int kColumns>
__global__ void __launch_bounds__(kThreads)
    reduce_columns_kernel(const __grid_constant__ ReducePlan p) {
  using State = typename R::template State<C>;
  [[maybe_unused]] constexpr int kUnroll = kInFlightOf<R, C>;
  auto& memory = dev::shared_mem<ColumnsMemory<R, C, kColumns>>();
  const int lanes = p.lanes, rows = kThreads / lanes;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % lanes, row = thread / lanes;
  const int64_t blocks_across = ceil_div(p.units, lanes);
  for (int64_t task = blockIdx.x; task < blocks_across * p.chunks; task += gridDim.x) {
    const int64_t chunk = task / blocks_across;
    const int64_t unit = (task - chunk * blocks_across) * lanes + lane;
    const int64_t begin = chunk * p.chunk;
    const int64_t end = begin + p.chunk < p.length ? begin + p.chunk : p.length;
    const bool active = unit < p.units;
    std::byte* at[3];
    p.kept.locate(active ? unit : 0, at);
    dev::Accumulator<R, C, kColumns> sum;
#pragma unroll kUnroll
    for (int64_t i = begin + row; active && i < end; i += rows) {
      std::byte* term[1] = {at[0]};
      p.reduced.advance(i, term);
      C values[kColumns];
      State states[kColumns];
      dev::load_as(reinterpret_cast<const T*>(term[0]), values);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const C value[1] = {values[c]};
        states[c] = R::template of<T>(value, p.reading.term, i);
      }
      sum.add(states);
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      memory.value[c][thread] = sum.total(c);
    }
    for (int half = rows / 2; half > 0; half /= 2) {
      __syncthreads();
      if (row < half) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          State* mine = &memory.value[c][thread];
          *mine = R::combine(*mine, mine[half * lanes]);
        }
      }
    }
    if (active && row == 0) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        store_result<R, C>(p, (unit * kColumns + c) * p.chunks + chunk,
                           at[1] ? at[1] + c * p.y_stride : nullptr, at[2],
                           memory.value[c][thread]);
      }
    }
    __syncthreads();  // before the memory is used again
  }
}

// Combines the states of the p.length chunks of each output.
template <class R, class C>
__global__ void __launch_bounds__(kThreads)
    reduce_partials_kernel(const __grid_constant__ ReducePlan p,
                           const typename R::template State<C>* partials) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t warps = static_cast<int64_t>(gridDim.x) * (kThreads / 32);
  for (int64_t output = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
       output < p.units; output += warps) {
    dev::Accumulator<R, C, 1> sum;
#pragma unroll 1
    for (int64_t i = lane; i < p.length; i += 32) {
      const typename R::template State<C> state[1] = {partials[output * p.length + i]};
      sum.add(state);
    }
    const auto total = dev::warp_reduce<R>(sum.total(0));
    if (lane == 0) {
      std::byte* at[3];
      p.kept.locate(output, at);
      store_result<R, C>(p, output, at[1], at[2], total);
    }
  }
}

// Launchers ---------------------------------------------------------------------------------------

// A reduction: y and aux have x's rank; each is undefined if not wanted.
struct Reduction {
  const View& x;
  const View& y;
  const View& aux;
  Reading reading;

  // The result whose sizes say which dimensions are reduced.
  const View& shape() const { return y ? y : aux; }
  bool is_reduced(int d) const { return shape().size(d) == 1 && x.size(d) != 1; }
};

struct Loops {
  StridedLoop kept, reduced;
};

// Reductions whose state is more than one value, or whose terms are not the elements.
void reduce_states(Reducer reducer, const Reduction& a);

// x with only its kept or only its reduced dimensions; the others have size 1.
View part_of(const Reduction& a, bool reduced);
bool takes_columns(const Loops& loops);
ReducePlan plan_of(const Reduction& a, const Loops& loops);
void plan_rows(const Loops& loops, int64_t width, ReducePlan& p);
void plan_columns(const Loops& loops, int64_t width, bool vectors, ReducePlan& p);

template <class R, class T, class C, int kColumns>
void launch_columns(const ReducePlan& p) {
  const unsigned blocks = grid_blocks(ceil_div(p.units, p.lanes) * p.chunks, 1);
  launch({"reduce_columns_kernel", blocks, kThreads, sizeof(ColumnsMemory<R, C, kColumns>)},
         reduce_columns_kernel<R, T, C, kColumns>, p);
}

template <class R, class T, class C = Wide<T>>
void reduce(const Reduction& a) {
  using State = typename R::template State<C>;
  // For bias gradients. Wider sums would need too many registers.
  constexpr bool kVectorColumns =
      std::is_same_v<R, dev::Scalar<dev::Sum>> && sizeof(C) <= 2 * sizeof(T);
  const View kept = part_of(a, false), reduced = part_of(a, true);
  const Loops loops = {StridedLoop("reduce", {&kept, &a.y, &a.aux}),
                       StridedLoop("reduce", {&reduced})};
  ReducePlan p = plan_of(a, loops);
  const bool columns = takes_columns(loops);
  columns ? plan_columns(loops, sizeof(T), kVectorColumns, p) : plan_rows(loops, sizeof(T), p);
  const int64_t partials = p.chunks > 1 ? loops.kept.numel() * p.chunks : 0;
  const Workspace workspace(static_cast<size_t>(partials) * sizeof(State), a.shape().device);
  p.partial = partials > 0 ? workspace.as<std::byte>() : nullptr;
  if (!columns) {
    launch({"reduce_rows_kernel", grid_blocks(p.units * p.chunks, kThreads / p.lanes), kThreads,
            sizeof(RowsMemory<R, C>)},
           reduce_rows_kernel<R, T, C>, p);
  } else if (p.columns == 1) {
    launch_columns<R, T, C, 1>(p);
  } else if constexpr (kVectorColumns) {
    launch_columns<R, T, C, dev::kVectorOf<T>>(p);
  }
  if (partials > 0) {
    ReducePlan second = plan_of(a, loops);
    second.length = p.chunks;
    launch({"reduce_partials_kernel", grid_blocks(second.units, kThreads / 32), kThreads},
           reduce_partials_kernel<R, C>, second, workspace.as<State>());
  }
}

}  // namespace binade::kernels::reduction
