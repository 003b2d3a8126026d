// Layer norm, backward. Gradients of weight and bias are sums over all rows: every block adds up
// its rows in a fixed order and writes one partial row, and a second kernel adds the partial rows.
//  - team per row: x and dy fit the registers of a team of threads (cuda/row_team.cuh) and are read
//    once. A few blocks per multiprocessor loop over the rows; a thread has the same columns in
//    every row, so its part of dweight and dbias stays in registers to the end. Then the teams of
//    the block are added in shared memory.
//  - longer rows: block per row for dx, which reads x and dy twice (the second time from L2), and
//    threads across columns for the partial rows.
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/norm/cudnn_norm_internal.h>
#include <binade/kernels/norm/layer_norm.h>
#include <binade/kernels/cuda/column_sums.cuh>
#include <binade/kernels/cuda/row_team.cuh>

namespace binade::kernels {
namespace {

constexpr int kMostLanes = 512, kTeamThreads = 256, kRowThreads = 512;
constexpr int64_t kMostBlocks = 4096;
constexpr int64_t kTeamBlocks = 396;  // three on each of 132 multiprocessors: one round
constexpr int kChunkRows = 64;
// Blocks that must fit on a multiprocessor; 0: the compiler decides. On Turing two would spill.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kResident = 1;
#else
constexpr int kResident = 0;
#endif

template <class T, class C = Compute<T>>
struct Problem {
  const T* x;
  const T* dy;
  T* dx;  // null if not wanted, like the partial sums
  int64_t rows, cols;
  const C* weight;  // null: 1
  const C* mean;    // null: 0 instead
  const C* rstd;
  C* dweight;  // [parts, cols]
  C* dbias;
};

template <class T, class C = Compute<T>>
struct TeamSmem {
  dev::TeamMemory<dev::SumPair<C>> pair;
  C column[kTeamThreads * kRowValues<T>];
};

// Adds the columns of all teams of the block to those of the first team, in the order of the teams.
template <class T, class C, int kValues>
__device__ __forceinline__ void add_teams(C (&sums)[kValues], const RowPlan& plan,
                                          const dev::Team& team, TeamSmem<T>& memory) {
  if (plan.teams() == 1) {
    return;
  }
  __syncthreads();  // the memory may be in use
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    memory.column[i * plan.threads + static_cast<int>(threadIdx.x)] = sums[i];
  }
  __syncthreads();
  if (team.index == 0) {
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      for (int other = 1; other < plan.teams(); ++other) {
        sums[i] += memory.column[i * plan.threads + other * plan.lanes + team.lane];
      }
    }
  }
}

// kCentred: with a mean. It is a template argument because a choice at run time would need more
// registers than there are.
template <class T, bool kCentred>
__global__ void __launch_bounds__(kMostLanes, kResident)
    layer_norm_backward_team_per_row_kernel(Problem<T> p, RowPlan plan) {
  using C = Compute<T>;
  using Slots = dev::RowSlots<T>;
  auto& memory = dev::shared_mem<TeamSmem<T>>();
  dev::Team team(plan);
  const Slots all(plan, team, true);
  const C share = C(1) / C(plan.cols);
  C weight[Slots::kValues], dweight[Slots::kValues] = {}, dbias[Slots::kValues] = {};
#pragma unroll
  for (int i = 0; i < Slots::kValues; ++i) {
    weight[i] = C(1);
  }
  if (p.weight) {
    all.load(p.weight, C(0), weight);
  }
  for (int64_t base = int64_t{blockIdx.x} * plan.teams(); base < plan.rows;
       base += int64_t{gridDim.x} * plan.teams()) {
    const int64_t row = base + team.index;
    const bool valid = row < plan.rows;
    const Slots slots(plan, team, valid);
    const C mean = kCentred && valid ? p.mean[row] : C(0), rstd = valid ? p.rstd[row] : C(0);
    C u[Slots::kValues], g[Slots::kValues];
    slots.load(p.x + row * plan.cols, mean, u);
    slots.load(p.dy + row * plan.cols, C(0), g);
    dev::SumPair<C> pair{};
#pragma unroll
    for (int i = 0; i < Slots::kValues; ++i) {
      u[i] = (u[i] - mean) * rstd;
      dweight[i] += g[i] * u[i];
      if constexpr (kCentred) {
        dbias[i] += g[i];
      }
      g[i] *= weight[i];
      pair = pair.merge({g[i], g[i] * u[i]});
    }
    if (p.dx) {
      pair = team.template reduce<dev::Merge>(pair, memory.pair);
      const C g_mean = kCentred ? pair.first * share : C(0), gu_mean = pair.second * share;
#pragma unroll
      for (int i = 0; i < Slots::kValues; ++i) {
        g[i] = (g[i] - g_mean - u[i] * gu_mean) * rstd;
      }
      slots.store(p.dx + row * plan.cols, g);
    }
  }
  const Slots first_team(plan, team, team.index == 0);
  if (p.dweight) {
    add_teams<T>(dweight, plan, team, memory);
    first_team.store(p.dweight + int64_t{blockIdx.x} * plan.cols, dweight);
  }
  if (p.dbias) {
    add_teams<T>(dbias, plan, team, memory);
    first_team.store(p.dbias + int64_t{blockIdx.x} * plan.cols, dbias);
  }
}

template <class T>
__global__ void __launch_bounds__(kRowThreads)
    layer_norm_backward_block_per_row_kernel(Problem<T> p) {
  using C = Compute<T>;
  constexpr int kVector = dev::kVectorOf<T>;
  auto& memory = dev::shared_mem<dev::BlockReduceMemory<dev::SumPair<C>, kRowThreads>>();
  const C share = C(1) / C(p.cols);
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const T *x = p.x + row * p.cols, *dy = p.dy + row * p.cols;
    T* dx = p.dx + row * p.cols;
    const C mean = p.mean ? p.mean[row] : C(0), rstd = p.rstd[row];
    const dev::VectorSpan span = dev::vector_span<kVector>(p.cols, x, dy, dx);
    const auto for_each = [&](auto&& f) {
      dev::for_each_vector<kVector>(span, threadIdx.x, kRowThreads, [&](auto width, int64_t at) {
        C u[decltype(width)::value], g[decltype(width)::value];
        dev::load_as(x + at, u);
        dev::load_as(dy + at, g);
        for (int i = 0; i < width(); ++i) {
          u[i] = (u[i] - mean) * rstd;
          g[i] *= p.weight ? p.weight[at + i] : C(1);
        }
        f(at, u, g);
      });
    };
    dev::SumPair<C> pair{};
    for_each([&]<int kWidth>(int64_t, C(&u)[kWidth], C(&g)[kWidth]) {
      for (int i = 0; i < kWidth; ++i) {
        pair = pair.merge({g[i], g[i] * u[i]});
      }
    });
    pair = dev::block_reduce<dev::Merge>(pair, memory);
    const C g_mean = p.mean ? pair.first * share : C(0), gu_mean = pair.second * share;
    for_each([&]<int kWidth>(int64_t at, C(&u)[kWidth], C(&g)[kWidth]) {
      for (int i = 0; i < kWidth; ++i) {
        g[i] = (g[i] - g_mean - u[i] * gu_mean) * rstd;
      }
      dev::store_from(dx + at, g);
    });
  }
}

// Block (x, y) takes dev::kColumns columns from x and the rows of chunk y: lanes across columns,
// warps across rows. It writes one partial row per chunk.
template <class T>
__global__ void __launch_bounds__(dev::kColumns* dev::kParts)
    layer_norm_backward_threads_across_columns_kernel(Problem<T> p, int64_t chunks) {
  using C = Compute<T>;
  auto& memory = dev::shared_mem<dev::ColumnSmem<dev::SumPair<C>>>();
  const int64_t col = int64_t{blockIdx.x} * dev::kColumns + threadIdx.x;
  for (int64_t chunk = blockIdx.y; chunk < chunks; chunk += gridDim.y) {
    const int64_t begin = chunk * kChunkRows;
    const int64_t end = begin + kChunkRows < p.rows ? begin + kChunkRows : p.rows;
    dev::SumPair<C> sums{};
    for (int64_t row = begin + threadIdx.y; row < end && col < p.cols; row += dev::kParts) {
      const C dy = static_cast<C>(p.dy[row * p.cols + col]);
      const C mean = p.mean ? p.mean[row] : C(0);
      const C u = (static_cast<C>(p.x[row * p.cols + col]) - mean) * p.rstd[row];
      sums = sums.merge({dy * u, dy});
    }
    sums = dev::add_parts(sums, memory);
    if (threadIdx.y == 0 && col < p.cols) {
      if (p.dweight) {
        p.dweight[chunk * p.cols + col] = sums.first;
      }
      if (p.dbias) {
        p.dbias[chunk * p.cols + col] = sums.second;
      }
    }
  }
}

// Adds `parts` partial rows each to dweight and dbias, in double. Either may be null.
template <class C>
__global__ void __launch_bounds__(dev::kColumns* dev::kParts)
    layer_norm_partial_rows_kernel(const C* partial_dweight, const C* partial_dbias, int64_t parts,
                                   int64_t cols, C* dweight, C* dbias) {
  auto& memory = dev::shared_mem<dev::ColumnSmem<dev::SumPair<double>>>();
  const int64_t col = int64_t{blockIdx.x} * dev::kColumns + threadIdx.x;
  dev::SumPair<double> sums{};
#pragma unroll 8
  for (int64_t i = threadIdx.y; i < (col < cols ? parts : 0); i += dev::kParts) {
    sums = sums.merge({dweight ? static_cast<double>(partial_dweight[i * cols + col]) : 0.0,
                       dbias ? static_cast<double>(partial_dbias[i * cols + col]) : 0.0});
  }
  sums = dev::add_parts(sums, memory);
  if (threadIdx.y == 0 && col < cols) {
    if (dweight) {
      dweight[col] = static_cast<C>(sums.first);
    }
    if (dbias) {
      dbias[col] = static_cast<C>(sums.second);
    }
  }
}

// launchers ---------------------------------------------------------------------------------------

// [parts, cols] in the compute dtype if `target` is wanted, else empty.
Workspace partial_rows(const View& target, int64_t parts) {
  const size_t bytes =
      target ? static_cast<size_t>(parts * target.numel) * size_of(target.dtype) : 0;
  return Workspace(bytes, target.device);
}

template <class T, class C = Compute<T>>
void run(const LayerNormBackward& a, Problem<T> p) {
  const dim3 block(dev::kColumns, dev::kParts);
  const unsigned column_blocks = static_cast<unsigned>(ceil_div(p.cols, dev::kColumns));
  const bool team = p.rows > 0 && fits_team<T>(p.cols, kMostLanes);
  RowPlan plan{.rows = p.rows};
  if (team) {
    plan = row_plan<T>(p.rows, p.cols, p.cols, kTeamBlocks, p.x, p.dy, p.dx, p.weight);
  }
  const int64_t parts = team ? plan.blocks : ceil_div(p.rows, kChunkRows);
  const Workspace dweight = partial_rows(a.dweight, parts), dbias = partial_rows(a.dbias, parts);
  p.dweight = a.dweight ? dweight.as<C>() : nullptr;
  p.dbias = a.dbias ? dbias.as<C>() : nullptr;
  if (team) {
    launch(
        {"layer_norm_backward_team_per_row_kernel", plan.blocks, plan.threads, sizeof(TeamSmem<T>)},
        p.mean ? layer_norm_backward_team_per_row_kernel<T, true>
               : layer_norm_backward_team_per_row_kernel<T, false>,
        p, plan);
  } else if (p.rows > 0) {
    if (p.dx) {
      launch({"layer_norm_backward_block_per_row_kernel",
              static_cast<unsigned>(std::min(p.rows, kMostBlocks)), kRowThreads,
              sizeof(dev::BlockReduceMemory<dev::SumPair<C>, kRowThreads>)},
             layer_norm_backward_block_per_row_kernel<T>, p);
    }
    if (p.dweight || p.dbias) {
      launch({"layer_norm_backward_threads_across_columns_kernel",
              dim3(column_blocks, static_cast<unsigned>(std::min<int64_t>(parts, 65535))), block,
              sizeof(dev::ColumnSmem<dev::SumPair<C>>)},
             layer_norm_backward_threads_across_columns_kernel<T>, p, parts);
    }
  }
  if (a.dweight || a.dbias) {
    launch({"layer_norm_partial_rows_kernel", column_blocks, block,
            sizeof(dev::ColumnSmem<dev::SumPair<double>>)},
           layer_norm_partial_rows_kernel<C>, p.dweight, p.dbias, parts, p.cols, a.dweight.as<C>(),
           a.dbias.as<C>());
  }
}

// An empty batch still sets dweight and dbias to 0.
void own_layer_norm_backward(const LayerNormBackward& a) {
  const int64_t rows = a.x.size(0), cols = a.x.size(1);
  const DenseInput x(a.x), dy(a.dy);
  const DenseOutput dx(a.dx);
  dispatch_floating("layer_norm backward", a.x.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    run<T>(a, {.x = x.as<T>(),
               .dy = dy.as<T>(),
               .dx = dx.as<T>(),
               .rows = rows,
               .cols = cols,
               .weight = a.weight.as<C>(),
               .mean = a.mean.as<C>(),
               .rstd = a.rstd.as<C>(),
               .dweight = nullptr,
               .dbias = nullptr});
  });
  dx.store();
}

}  // namespace

void cuda::layer_norm_backward(const LayerNormBackward& a) {
  check_arguments(a);
  if (a.x.size(1) > 0) {
    run_norm(a, [&] { own_layer_norm_backward(a); });
  }
}

}  // namespace binade::kernels
