// CUDA reductions. Kept and reduced dimensions are coalesced apart (StridedLoop); an output is one
// position of the kept ones, and its terms are the sequence over the reduced ones.
//
// reduce_rows_kernel: neighbouring threads take neighbouring terms, for layouts whose reduced
// dimensions are innermost. A warp per output, or a block where the sequence is long; 16 bytes a
// load where the terms are contiguous.
// reduce_columns_kernel: neighbouring threads take neighbouring outputs, where a kept dimension is
// innermost, or where the sequence is short. A block is lanes x rows threads: a lane has one output
// or a vector of them, the rows share the sequence and are combined as a tree in shared memory.
//
// Where outputs are too few to fill the device the sequence is cut into chunks, whose results go
// through workspace to a second launch of the rows kernel. All cuts depend on the shape only, and
// every thread accumulates in levels (cuda/accumulator.cuh), so that errors stay small.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy.h>
#include <binade/kernels/reduce_checks.h>
#include <binade/kernels/cuda/accumulator.cuh>
#include <binade/kernels/cuda/block_reduce.cuh>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>

#include <limits>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kEnoughBlocks = 1024;  // more blocks are no better
constexpr int64_t kLongRow = 1024;       // a block per output from here on
constexpr int64_t kShortRow = 16;        // a thread per output below

struct ReducePlan {
  StridedIndex<2> kept;     // x, y: in units of `columns` outputs
  StridedIndex<1> reduced;  // x: in units of `terms` terms; its data is not used
  int64_t units, length;    // of outputs, of the sequence
  int64_t chunks, chunk;    // parts of the sequence, and the units in each but the last
  int64_t y_stride;         // bytes between neighbouring outputs of a unit
  int32_t terms, columns;   // in a unit of the sequence, in a unit of outputs
  int32_t lanes;            // threads of an output (rows), or across outputs (columns)
  bool contiguous;          // the sequence is one contiguous range
  DType out;
  int64_t divisor;              // for the mean, else 0
  const std::byte* first_pass;  // the chunks of all outputs, row by row: read in place of x
  std::byte* partial;           // where they are written, in place of y
};

// Result number `index` where this is the first of two passes, else the finished value into y.
template <class C>
__device__ __forceinline__ void store_result(const ReducePlan& p, int64_t index, std::byte* y,
                                             C value) {
  if (p.partial) {
    reinterpret_cast<C*>(p.partial)[index] = value;
    return;
  }
  if constexpr (std::is_floating_point_v<C>) {
    value = p.divisor ? value / static_cast<C>(p.divisor) : value;
  }
  if constexpr (std::is_same_v<C, float>) {
    if (p.out == DType::f16) {
      *reinterpret_cast<half*>(y) = half(value);
      return;
    }
    if (p.out == DType::bf16) {
      *reinterpret_cast<bfloat16*>(y) = bfloat16(value);
      return;
    }
  }
  *reinterpret_cast<C*>(y) = value;
}

// The type of sums of T: integers wrap around, so their sums and products are unsigned.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, T, Compute<T>>;

template <class C>
struct RowsMemory {
  dev::BlockReduceMemory<C, kThreads> block;
};

// p.lanes threads (a warp or the block) share the sequence of an output, or one chunk of it.
template <class Op, class T>
__global__ void __launch_bounds__(kThreads)
    reduce_rows_kernel(const __grid_constant__ ReducePlan p) {
  using C = Wide<T>;
  constexpr int kVector = dev::kVectorOf<T>;
  auto& memory = dev::shared_mem<RowsMemory<C>>();
  const int lanes = p.lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t groups = static_cast<int64_t>(gridDim.x) * (kThreads / lanes);
  const int64_t group = static_cast<int64_t>(blockIdx.x) * (kThreads / lanes) + threadIdx.x / lanes;
  const int64_t tasks = p.units * p.chunks;
  // All threads of the block make the same number of rounds, because of its barriers.
  for (int64_t first = 0; first < tasks; first += groups) {
    const int64_t task = first + group;
    const bool active = task < tasks;
    const int64_t unit = (active ? task : 0) / p.chunks;
    const int64_t begin = ((active ? task : 0) - unit * p.chunks) * p.chunk;
    int64_t end = begin + p.chunk < p.length ? begin + p.chunk : p.length;
    end = active ? end : begin;
    std::byte* at[2];
    p.kept.locate(unit, at);
    const std::byte* x =
        p.first_pass ? p.first_pass + unit * p.length * static_cast<int64_t>(sizeof(T)) : at[0];
    dev::Accumulator<Op, C, 1> sum;
    if (p.contiguous) {
      const T* row = reinterpret_cast<const T*>(x) + begin;
      const auto span = dev::vector_span<kVector>(end - begin, row);
      constexpr int kInFlight = sizeof(T) == 2 ? 2 : 4;  // vectors; more of 16-bit values spill
      dev::for_each_vector<kVector, kInFlight>(span, lane, lanes, [&](auto width, int64_t i) {
        C values[decltype(width)::value];
        dev::load_as(row + i, values);
        const C total[1] = {dev::combine_all<Op>(values)};
        sum.add(total);
      });
    } else if (p.terms == 1) {
#pragma unroll 4
      for (int64_t i = begin + lane; i < end; i += lanes) {
        std::byte* term[1] = {const_cast<std::byte*>(x)};
        p.reduced.advance(i, term);
        const C total[1] = {static_cast<C>(*reinterpret_cast<const T*>(term[0]))};
        sum.add(total);
      }
    } else {
      for (int64_t i = begin + lane; i < end; i += lanes) {
        std::byte* term[1] = {const_cast<std::byte*>(x)};
        p.reduced.advance(i, term);
        C values[kVector];
        dev::load_as(reinterpret_cast<const T*>(term[0]), values);
        const C total[1] = {dev::combine_all<Op>(values)};
        sum.add(total);
      }
    }
    const C total = lanes == 32 ? dev::warp_reduce<Op>(sum.total(0))
                                : dev::block_reduce<Op>(sum.total(0), memory.block);
    if (active && lane == 0) {
      store_result(p, task, at[1], total);
    }
  }
}

template <class C, int kColumns>
struct ColumnsMemory {
  C value[kColumns][kThreads];
};

// p.lanes neighbouring units of outputs side by side, kThreads / p.lanes rows share the sequence.
template <class Op, class T, int kColumns>
__global__ void __launch_bounds__(kThreads)
    reduce_columns_kernel(const __grid_constant__ ReducePlan p) {
  using C = Wide<T>;
  auto& memory = dev::shared_mem<ColumnsMemory<C, kColumns>>();
  const int lanes = p.lanes, rows = kThreads / lanes;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % lanes, row = thread / lanes;
  const int64_t blocks_across = ceil_div(p.units, lanes);
  for (int64_t task = blockIdx.x; task < blocks_across * p.chunks; task += gridDim.x) {
    const int64_t chunk = task / blocks_across;
    const int64_t unit = (task - chunk * blocks_across) * lanes + lane;
    const int64_t begin = chunk * p.chunk;
    const int64_t end = begin + p.chunk < p.length ? begin + p.chunk : p.length;
    const bool active = unit < p.units;
    std::byte* at[2];
    p.kept.locate(active ? unit : 0, at);
    dev::Accumulator<Op, C, kColumns> sum;
#pragma unroll 4
    for (int64_t i = begin + row; active && i < end; i += rows) {
      std::byte* term[1] = {at[0]};
      p.reduced.advance(i, term);
      C values[kColumns];
      dev::load_as(reinterpret_cast<const T*>(term[0]), values);
      sum.add(values);
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
          C* mine = &memory.value[c][thread];
          *mine = Op::combine(*mine, mine[half * lanes]);
        }
      }
    }
    if (active && row == 0) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        store_result(p, (unit * kColumns + c) * p.chunks + chunk, at[1] + c * p.y_stride,
                     memory.value[c][thread]);
      }
    }
    __syncthreads();  // before the memory is used again
  }
}

// Launchers ---------------------------------------------------------------------------------------

// x with only its kept or only its reduced dimensions; the others have size 1.
View part_of(const ReduceForward& a, bool reduced) {
  View part = a.x;
  for (int d = 0; d < a.x.dim(); ++d) {
    part.sizes[d] = is_reduced(a, d) == reduced ? a.x.size(d) : 1;
  }
  part.numel = element_count(part.sizes);
  return part;
}

struct Loops {
  StridedLoop kept, reduced;
};

// Whether vectors of 16 bytes along dimension 0 of `inner` are aligned wherever they start.
bool vectors_aligned(const StridedLoop& inner, const StridedLoop& outer, int64_t width) {
  const int64_t per_vector = 16 / width;
  bool aligned = inner.stride(0, 0) == width && inner.size(0) % per_vector == 0 &&
                 reinterpret_cast<uintptr_t>(inner.data(0)) % 16 == 0;
  for (int d = 1; d < inner.dims(); ++d) {
    aligned = aligned && inner.stride(0, d) % 16 == 0;
  }
  for (int d = 0; d < outer.dims() && outer.numel() > 1; ++d) {
    aligned = aligned && outer.stride(0, d) % 16 == 0;
  }
  return aligned;
}

int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

// Neighbouring threads on neighbouring outputs, unless the sequence is the inner one and long.
bool takes_columns(const Loops& loops) {
  const StridedLoop &kept = loops.kept, &reduced = loops.reduced;
  if (magnitude(kept.stride(0, 0)) < magnitude(reduced.stride(0, 0))) {
    return kept.numel() > 1 && (kept.size(0) >= 4 || reduced.size(0) < kShortRow);
  }
  return reduced.numel() < kShortRow && kept.numel() >= kShortRow;
}

// Cuts the sequence into chunks of at least `least` units where there are only `blocks` blocks.
void cut(ReducePlan& p, int64_t blocks, int64_t least) {
  p.chunks = 1;
  p.chunk = p.length;
  if (blocks >= kEnoughBlocks || p.length < 2 * least) {
    return;
  }
  const int64_t useful = p.length / least, wanted = ceil_div(kEnoughBlocks, blocks);
  constexpr int64_t kRounding = 32;  // chunks keep the alignment of the row
  p.chunk = ceil_div(ceil_div(p.length, useful < wanted ? useful : wanted), kRounding) * kRounding;
  p.chunks = ceil_div(p.length, p.chunk);
}

ReducePlan plan_of(const ReduceForward& a, const Loops& loops) {
  ReducePlan p = {.kept = StridedIndex<2>(loops.kept),
                  .reduced = StridedIndex<1>(loops.reduced),
                  .units = loops.kept.numel(),
                  .length = loops.reduced.numel(),
                  .chunks = 1,
                  .chunk = loops.reduced.numel(),
                  .y_stride = loops.kept.stride(1, 0),
                  .terms = 1,
                  .columns = 1,
                  .lanes = 32,
                  .contiguous = false,
                  .out = a.y.dtype,
                  .divisor = a.op == Reduce::mean ? loops.reduced.numel() : 0,
                  .first_pass = nullptr,
                  .partial = nullptr};
  return p;
}

void plan_rows(const Loops& loops, int64_t width, ReducePlan& p) {
  const int64_t per_vector = 16 / width;
  p.contiguous = loops.reduced.dims() == 1 && loops.reduced.stride(0, 0) == width;
  if (!p.contiguous && vectors_aligned(loops.reduced, loops.kept, width)) {
    p.terms = static_cast<int32_t>(per_vector);
    p.length /= per_vector;
    p.reduced.set_size(0, loops.reduced.size(0) / per_vector);
    p.reduced.stride[0][0] *= per_vector;
  }
  p.lanes = loops.reduced.numel() >= kLongRow ? kThreads : 32;
  constexpr int64_t kLeastTerms = 4096;
  cut(p, ceil_div(p.units * p.lanes, kThreads), kLeastTerms / p.terms);
}

void plan_columns(const Loops& loops, int64_t width, bool vectors, ReducePlan& p) {
  if (vectors && vectors_aligned(loops.kept, loops.reduced, width)) {
    const int64_t per_vector = 16 / width;
    p.columns = static_cast<int32_t>(per_vector);
    p.units /= per_vector;
    p.kept.set_size(0, loops.kept.size(0) / per_vector);
    p.kept.stride[0][0] *= per_vector;
    p.kept.stride[1][0] *= per_vector;
  }
  p.lanes = 1;
  while (p.lanes < 32 && p.lanes < p.units) {
    p.lanes *= 2;
  }
  while (p.lanes < kThreads && kThreads / p.lanes > p.length) {
    p.lanes *= 2;
  }
  constexpr int64_t kLeastPerThread = 16;
  cut(p, ceil_div(p.units, p.lanes), kThreads / p.lanes * kLeastPerThread);
}

template <class Op, class T>
void launch_rows(const ReducePlan& p) {
  const unsigned blocks = grid_blocks(p.units * p.chunks, kThreads / p.lanes);
  launch({"reduce_rows_kernel", blocks, kThreads, sizeof(RowsMemory<Wide<T>>)},
         reduce_rows_kernel<Op, T>, p);
}

template <class Op, class T, int kColumns>
void launch_columns(const ReducePlan& p) {
  const unsigned blocks = grid_blocks(ceil_div(p.units, p.lanes) * p.chunks, 1);
  launch({"reduce_columns_kernel", blocks, kThreads, sizeof(ColumnsMemory<Wide<T>, kColumns>)},
         reduce_columns_kernel<Op, T, kColumns>, p);
}

template <class Op, class T>
void reduce(const ReduceForward& a) {
  using C = Wide<T>;
  constexpr bool kVectorColumns = std::is_same_v<Op, dev::Sum>;  // bias gradients
  const View kept = part_of(a, false), reduced = part_of(a, true);
  const Loops loops = {StridedLoop("reduce", {&kept, &a.y}), StridedLoop("reduce", {&reduced})};
  ReducePlan p = plan_of(a, loops);
  const bool columns = takes_columns(loops);
  columns ? plan_columns(loops, sizeof(T), kVectorColumns, p) : plan_rows(loops, sizeof(T), p);
  const int64_t partials = p.chunks > 1 ? loops.kept.numel() * p.chunks : 0;
  const Workspace workspace(static_cast<size_t>(partials) * sizeof(C), a.y.device);
  p.partial = partials > 0 ? workspace.as<std::byte>() : nullptr;
  if (!columns) {
    launch_rows<Op, T>(p);
  } else if (p.columns == 1) {
    launch_columns<Op, T, 1>(p);
  } else if constexpr (kVectorColumns) {
    launch_columns<Op, T, dev::kVectorOf<T>>(p);
  }
  if (partials > 0) {
    ReducePlan second = plan_of(a, loops);
    second.length = second.chunk = p.chunks;
    second.contiguous = true;
    second.first_pass = p.partial;
    second.lanes = p.chunks >= kLongRow ? kThreads : 32;
    launch_rows<Op, C>(second);
  }
}

template <class Op>
void reduce_dtype(const ReduceForward& a) {
  constexpr bool kWraps = std::is_same_v<Op, dev::Sum> || std::is_same_v<Op, dev::Product>;
  switch (a.x.dtype) {
    case DType::i64: return reduce<Op, std::conditional_t<kWraps, uint64_t, int64_t>>(a);
    case DType::i32: return reduce<Op, std::conditional_t<kWraps, uint32_t, int32_t>>(a);
    default: dispatch_floating("reduce", a.x.dtype, [&]<class T>(Type<T>) { reduce<Op, T>(a); });
  }
}

}  // namespace

void cuda::reduce_forward(const ReduceForward& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  if (a.x.numel == 0) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const double nothing = a.op == Reduce::mean ? kNan : a.op == Reduce::prod ? 1 : 0;
    return kernels::fill({.y = a.y, .value = nothing});
  }
  switch (a.op) {
    case Reduce::max: return reduce_dtype<dev::Max>(a);
    case Reduce::min: return reduce_dtype<dev::Min>(a);
    case Reduce::prod: return reduce_dtype<dev::Product>(a);
    default: reduce_dtype<dev::Sum>(a);
  }
}

}  // namespace binade::kernels
