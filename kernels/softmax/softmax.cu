// Softmax and log-softmax. In memory order the tensor is [outer, cols, inner], with softmax over
// cols. There are three decompositions, all bound by memory:
//  - team per row: inner = 1 and the row fits the registers of a team of threads
//    (cuda/row_team.cuh): one read, one write.
//  - block per row: inner = 1 and a longer row. One pass computes maximum and sum together,
//    rescaling the sum whenever the maximum grows; a second pass writes. Its reads are L2 hits
//    unless rows are huge.
//  - threads across lines: inner > 1. The 32 lanes of a warp take adjacent lines, so every access
//    is coalesced; the 8 warps of a block split the columns and merge in shared memory.
// The backward reads y and dy in the same three ways.
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/softmax/softmax.h>
#include <binade/kernels/cuda/row_team.cuh>

namespace binade::kernels {
namespace {

constexpr int kMostLanes = 1024, kRowThreads = 512, kLines = 32, kParts = 8;
constexpr int64_t kMostBlocks = int64_t{1} << 24;  // of a grid: with more rows a block loops

// y of one element, from the maximum and the sum (its logarithm or its inverse) of its row.
template <class T, class C>
__device__ __forceinline__ C softmax_value(C x, C largest, C sum_term, bool log) {
  return log ? x - largest - sum_term : dev::exp_for<T>(x - largest) * sum_term;
}
template <class C>
__device__ __forceinline__ C softmax_sum_term(C sum, bool log) {
  return log ? std::log(sum) : C(1) / sum;
}
// The term that the backward sums over a row, and below dx.
template <class C>
__device__ __forceinline__ C softmax_gradient_term(C y, C dy, bool log) {
  return log ? dy : y * dy;
}
template <class T, class C>
__device__ __forceinline__ C softmax_gradient(C y, C dy, C sum, bool log) {
  return log ? dy - dev::exp_for<T>(y) * sum : y * (dy - sum);
}

// team per row ------------------------------------------------------------------------------------

template <class T>
__global__ void __launch_bounds__(kMostLanes)
    softmax_forward_team_per_row_kernel(const T* x, T* y, RowPlan plan, bool log) {
  using C = Compute<T>;
  using Slots = dev::RowSlots<T>;
  auto& memory = dev::shared_mem<dev::TeamMemory<C>>();
  dev::Team team(plan);
  for (int64_t base = int64_t{blockIdx.x} * plan.teams(); base < plan.rows;
       base += int64_t{gridDim.x} * plan.teams()) {
    const int64_t row = base + team.index, first = row * plan.cols;
    const Slots slots(plan, team, row < plan.rows);
    C v[Slots::kValues];
    slots.load(x + first, -std::numeric_limits<C>::infinity(), v);
    C largest = v[0], sum = 0;
#pragma unroll
    for (int i = 1; i < Slots::kValues; ++i) {
      largest = dev::Max::combine(largest, v[i]);
    }
    largest = team.template reduce<dev::Max>(largest, memory);
#pragma unroll
    for (int i = 0; i < Slots::kValues; ++i) {
      const C e = dev::exp_for<T>(v[i] - largest);
      sum += e;
      v[i] = log ? v[i] - largest : e;
    }
    const C term = softmax_sum_term(team.template reduce<dev::Sum>(sum, memory), log);
#pragma unroll
    for (int i = 0; i < Slots::kValues; ++i) {
      v[i] = log ? v[i] - term : v[i] * term;
    }
    slots.store(y + first, v);
  }
}

template <class T>
__global__ void __launch_bounds__(kMostLanes)
    softmax_backward_team_per_row_kernel(const T* y, const T* dy, T* dx, RowPlan plan, bool log) {
  using C = Compute<T>;
  using Slots = dev::RowSlots<T>;
  auto& memory = dev::shared_mem<dev::TeamMemory<C>>();
  dev::Team team(plan);
  for (int64_t base = int64_t{blockIdx.x} * plan.teams(); base < plan.rows;
       base += int64_t{gridDim.x} * plan.teams()) {
    const int64_t row = base + team.index, first = row * plan.cols;
    const Slots slots(plan, team, row < plan.rows);
    C v[Slots::kValues], g[Slots::kValues], sum = 0;
    slots.load(y + first, C(0), v);
    slots.load(dy + first, C(0), g);
#pragma unroll
    for (int i = 0; i < Slots::kValues; ++i) {
      sum += softmax_gradient_term(v[i], g[i], log);
    }
    sum = team.template reduce<dev::Sum>(sum, memory);
#pragma unroll
    for (int i = 0; i < Slots::kValues; ++i) {
      v[i] = softmax_gradient<T>(v[i], g[i], sum, log);
    }
    slots.store(dx + first, v);
  }
}

// block per row -----------------------------------------------------------------------------------

template <class T>
__global__ void __launch_bounds__(kRowThreads)
    softmax_forward_block_per_row_kernel(const T* x, T* y, int64_t rows, int64_t cols, bool log) {
  using C = Compute<T>;
  constexpr int kVector = dev::kVectorOf<T>;
  auto& memory = dev::shared_mem<dev::BlockReduceMemory<dev::MaxSum<C>, kRowThreads>>();
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = x + row * cols;
    T* to = y + row * cols;
    const dev::VectorSpan span = dev::vector_span<kVector>(cols, from, to);
    auto all = dev::MaxSum<C>::none();
    dev::for_each_vector<kVector>(span, threadIdx.x, kRowThreads, [&](auto width, int64_t at) {
      C v[decltype(width)::value];
      dev::load_as(from + at, v);
      all = dev::add_exponentials<T>(all, v);
    });
    all = dev::block_reduce<dev::Merge>(all, memory);
    const C term = softmax_sum_term(all.sum, log);
    dev::for_each_vector<kVector>(span, threadIdx.x, kRowThreads, [&](auto width, int64_t at) {
      C v[decltype(width)::value];
      dev::load_as(from + at, v);
      for (C& value : v) {
        value = softmax_value<T>(value, all.max, term, log);
      }
      dev::store_from(to + at, v);
    });
  }
}

template <class T>
__global__ void __launch_bounds__(kRowThreads)
    softmax_backward_block_per_row_kernel(const T* y, const T* dy, T* dx, int64_t rows,
                                          int64_t cols, bool log) {
  using C = Compute<T>;
  constexpr int kVector = dev::kVectorOf<T>;
  auto& memory = dev::shared_mem<dev::BlockReduceMemory<C, kRowThreads>>();
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *values = y + row * cols, *upstream = dy + row * cols;
    T* to = dx + row * cols;
    const dev::VectorSpan span = dev::vector_span<kVector>(cols, values, upstream, to);
    C sum = 0;
    dev::for_each_vector<kVector>(span, threadIdx.x, kRowThreads, [&](auto width, int64_t at) {
      C v[decltype(width)::value], g[decltype(width)::value];
      dev::load_as(values + at, v);
      dev::load_as(upstream + at, g);
      for (int i = 0; i < width(); ++i) {
        sum += softmax_gradient_term(v[i], g[i], log);
      }
    });
    sum = dev::block_sum(sum, memory);
    dev::for_each_vector<kVector>(span, threadIdx.x, kRowThreads, [&](auto width, int64_t at) {
      C v[decltype(width)::value], g[decltype(width)::value];
      dev::load_as(values + at, v);
      dev::load_as(upstream + at, g);
      for (int i = 0; i < width(); ++i) {
        v[i] = softmax_gradient<T>(v[i], g[i], sum, log);
      }
      dev::store_from(to + at, v);
    });
  }
}

// threads across lines ----------------------------------------------------------------------------

// The tensor as [outer, cols, inner].
struct Lines {
  int64_t outer, cols, inner;

  BINADE_HD int64_t count() const { return outer * inner; }
  BINADE_HD int64_t start(int64_t line) const { return line / inner * cols * inner + line % inner; }
};

template <class V>
struct LineMemory {
  V part[kParts][kLines];
};

// Combines the parts of this thread's line. The whole block must call it, kLines x kParts threads.
template <class Op, class V>
__device__ __forceinline__ V line_reduce(V value, LineMemory<V>& memory) {
  memory.part[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  value = memory.part[0][threadIdx.x];
  for (int i = 1; i < kParts; ++i) {
    value = Op::combine(value, memory.part[i][threadIdx.x]);
  }
  __syncthreads();  // before the memory is used again
  return value;
}

template <class T>
__global__ void __launch_bounds__(kLines* kParts)
    softmax_forward_threads_across_lines_kernel(const T* x, T* y, Lines lines, bool log) {
  using C = Compute<T>;
  auto& memory = dev::shared_mem<LineMemory<dev::MaxSum<C>>>();
  for (int64_t base = int64_t{blockIdx.x} * kLines; base < lines.count();
       base += int64_t{gridDim.x} * kLines) {
    const int64_t line = base + threadIdx.x, start = lines.start(line);
    const int64_t cols = line < lines.count() ? lines.cols : 0;
    auto all = dev::MaxSum<C>::none();
    for (int64_t i = threadIdx.y; i < cols; i += kParts) {
      const C v[1] = {static_cast<C>(x[start + i * lines.inner])};
      all = dev::add_exponentials<T>(all, v);
    }
    all = line_reduce<dev::Merge>(all, memory);
    const C term = softmax_sum_term(all.sum, log);
    for (int64_t i = threadIdx.y; i < cols; i += kParts) {
      const int64_t at = start + i * lines.inner;
      y[at] = static_cast<T>(softmax_value<T>(static_cast<C>(x[at]), all.max, term, log));
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kLines* kParts)
    softmax_backward_threads_across_lines_kernel(const T* y, const T* dy, T* dx, Lines lines,
                                                 bool log) {
  using C = Compute<T>;
  auto& memory = dev::shared_mem<LineMemory<C>>();
  for (int64_t base = int64_t{blockIdx.x} * kLines; base < lines.count();
       base += int64_t{gridDim.x} * kLines) {
    const int64_t line = base + threadIdx.x, start = lines.start(line);
    const int64_t cols = line < lines.count() ? lines.cols : 0;
    C sum = 0;
    for (int64_t i = threadIdx.y; i < cols; i += kParts) {
      const int64_t at = start + i * lines.inner;
      sum += softmax_gradient_term(static_cast<C>(y[at]), static_cast<C>(dy[at]), log);
    }
    sum = line_reduce<dev::Sum>(sum, memory);
    for (int64_t i = threadIdx.y; i < cols; i += kParts) {
      const int64_t at = start + i * lines.inner;
      const C v = static_cast<C>(y[at]), g = static_cast<C>(dy[at]);
      dx[at] = static_cast<T>(softmax_gradient<T>(v, g, sum, log));
    }
  }
}

// launchers ---------------------------------------------------------------------------------------

// True if the views are dense and have the same memory order.
bool same_dense(const View& x, const View& y) {
  return x.strides == y.strides && is_dense(x.sizes, x.strides);
}

// A dense view as a vector of its elements in memory order.
View flat(const View& x) {
  View line = x;
  line.sizes = Dims{x.numel};
  line.strides = Dims{1};
  line.contiguous = true;
  return line;
}

// The lines along `dim` of memory with these strides; a scalar is one line.
Lines lines_of(const View& x, int dim, const Dims& strides) {
  const int64_t cols = x.dim() == 0 ? 1 : x.size(dim);
  const int64_t inner = cols == 1 ? 1 : strides[dim];
  return {x.numel / (cols * inner), cols, inner};
}

unsigned blocks_for(int64_t work) { return static_cast<unsigned>(std::min(work, kMostBlocks)); }

}  // namespace

void cuda::softmax_forward(const SoftmaxForward& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  const bool direct = same_dense(a.x, a.y);
  const View x_view = direct ? flat(a.x) : a.x, y_view = direct ? flat(a.y) : a.y;
  const Lines lines = lines_of(a.x, a.dim, direct ? a.x.strides : row_major_strides(a.x.sizes));
  const DenseInput x(x_view);
  const DenseOutput y(y_view);
  dispatch_floating("softmax", a.x.dtype, [&]<class T>(Type<T>) {
    using Sum = dev::MaxSum<Compute<T>>;
    const T* from = x.as<T>();
    T* to = y.as<T>();
    if (lines.inner > 1) {
      launch({"softmax_forward_threads_across_lines_kernel",
              blocks_for(ceil_div(lines.count(), kLines)), dim3(kLines, kParts),
              sizeof(LineMemory<Sum>)},
             softmax_forward_threads_across_lines_kernel<T>, from, to, lines, a.log);
    } else if (fits_team<T>(lines.cols, kMostLanes)) {
      const RowPlan plan = row_plan<T>(lines.outer, lines.cols, lines.cols, kMostBlocks, from, to);
      launch({"softmax_forward_team_per_row_kernel", plan.blocks, plan.threads,
              sizeof(dev::TeamMemory<Compute<T>>)},
             softmax_forward_team_per_row_kernel<T>, from, to, plan, a.log);
    } else {
      launch({"softmax_forward_block_per_row_kernel", blocks_for(lines.outer), kRowThreads,
              sizeof(dev::BlockReduceMemory<Sum, kRowThreads>)},
             softmax_forward_block_per_row_kernel<T>, from, to, lines.outer, lines.cols, a.log);
    }
  });
  y.store();
}

void cuda::softmax_backward(const SoftmaxBackward& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const bool direct = same_dense(a.y, a.dy) && same_dense(a.y, a.dx);
  const View y_view = direct ? flat(a.y) : a.y, dy_view = direct ? flat(a.dy) : a.dy;
  const View dx_view = direct ? flat(a.dx) : a.dx;
  const Lines lines = lines_of(a.y, a.dim, direct ? a.y.strides : row_major_strides(a.y.sizes));
  const DenseInput y(y_view), dy(dy_view);
  const DenseOutput dx(dx_view);
  dispatch_floating("softmax", a.y.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const T *values = y.as<T>(), *upstream = dy.as<T>();
    T* to = dx.as<T>();
    if (lines.inner > 1) {
      launch({"softmax_backward_threads_across_lines_kernel",
              blocks_for(ceil_div(lines.count(), kLines)), dim3(kLines, kParts),
              sizeof(LineMemory<C>)},
             softmax_backward_threads_across_lines_kernel<T>, values, upstream, to, lines, a.log);
    } else if (fits_team<T>(lines.cols, kMostLanes)) {
      const RowPlan plan =
          row_plan<T>(lines.outer, lines.cols, lines.cols, kMostBlocks, values, upstream, to);
      launch({"softmax_backward_team_per_row_kernel", plan.blocks, plan.threads,
              sizeof(dev::TeamMemory<C>)},
             softmax_backward_team_per_row_kernel<T>, values, upstream, to, plan, a.log);
    } else {
      launch({"softmax_backward_block_per_row_kernel", blocks_for(lines.outer), kRowThreads,
              sizeof(dev::BlockReduceMemory<C, kRowThreads>)},
             softmax_backward_block_per_row_kernel<T>, values, upstream, to, lines.outer,
             lines.cols, a.log);
    }
  });
  dx.store();
}

}  // namespace binade::kernels
