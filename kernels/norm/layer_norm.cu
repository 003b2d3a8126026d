// Layer norm, forward.
//  - team per row: the row fits the registers of a team of threads (cuda/row_team.cuh) and is read
//    once. The team computes the mean, then the deviations from it and the remainder of the mean.
//    Blocks loop over rows, so that a thread loads weight and bias only once.
//  - block per row: longer rows. One pass computes mean and deviations (every thread relative to
//    its first element, merged by Chan's formula), one writes; its reads are L2 hits.
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/norm/cudnn_norm_internal.h>
#include <binade/kernels/norm/layer_norm.h>
#include <binade/kernels/cuda/row_team.cuh>

#include <limits>

namespace binade::kernels {
namespace {

template <class T>
constexpr int kMostLanes = sizeof(T) == 8 ? 512 : 1024;  // doubles need their registers
constexpr int kRowThreads = 512;
constexpr int64_t kMostBlocks = 4096;

template <class T, class C = Compute<T>>
struct Problem {
  const T* x;
  T* y;
  int64_t rows, cols;
  const C* weight;  // null: 1
  const C* bias;    // null: 0
  C* mean;          // null: 0 instead
  C* rstd;
  C eps;
};

template <class C>
__device__ __forceinline__ C rstd_of(C variance, C eps) {
  return C(1) / std::sqrt((variance < C(0) ? C(0) : variance) + eps);
}

// True if the squares of a row exceed C, or the row has an infinity or NaN.
template <class C>
__device__ __forceinline__ bool is_huge(C variance) {
  return !(variance <= std::numeric_limits<C>::max());
}

// Scales the sum of a row that a team holds: it may exceed C even if no element does. The scale is
// a power of two, so rows of ordinary size get the same first mean as without it.
template <class C>
inline constexpr C kSumScale = C(0x1p-14);

template <class C>
struct TeamSmem {
  dev::TeamMemory<C> sum;
  dev::TeamMemory<dev::SumPair<C>> pair;
  dev::TeamMemory<int> vote;
};

// Statistics of a row whose squares exceed C. They are computed from scaled deviations from a first
// mean: delta is the mean less that first mean.
template <class C>
struct Rest {
  C delta, rstd;
};
template <class C, int kCount, class T>
__device__ __forceinline__ Rest<C> rest_of_huge(dev::Team& team, const C (&d)[kCount],
                                                dev::TeamMemory<dev::SumPair<C>>& memory, C count,
                                                const Problem<T>& p) {
  constexpr C kScale = kHugeRowScale<C>;
  dev::SumPair<C> pair{};
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const C scaled = d[i] * kScale;
    pair = pair.merge({scaled, scaled * scaled});
  }
  pair = team.template reduce<dev::Merge>(pair, memory);
  const C mean = p.mean ? pair.first / count : C(0);
  return {mean / kScale,
          kScale * rstd_of(pair.second / count - mean * mean, p.eps * kScale * kScale)};
}

template <class T>
__global__ void __launch_bounds__(kMostLanes<T>)
    layer_norm_forward_team_per_row_kernel(Problem<T> p, RowPlan plan) {
  using C = Compute<T>;
  using Slots = dev::RowSlots<T>;
  auto& memory = dev::shared_mem<TeamSmem<C>>();
  dev::Team team(plan);
  const Slots all(plan, team, true);
  C weight[Slots::kValues], bias[Slots::kValues];
#pragma unroll
  for (int i = 0; i < Slots::kValues; ++i) {
    weight[i] = C(1);
    bias[i] = C(0);
  }
  if (p.weight) {
    all.load(p.weight, C(0), weight);
  }
  if (p.bias) {
    all.load(p.bias, C(0), bias);
  }
  for (int64_t base = int64_t{blockIdx.x} * plan.teams(); base < plan.rows;
       base += int64_t{gridDim.x} * plan.teams()) {
    const int64_t row = base + team.index;
    const Slots slots(plan, team, row < plan.rows);
    C v[Slots::kValues], sum = 0;
    slots.load(p.x + row * plan.cols, C(0), v);
#pragma unroll
    for (int i = 0; i < Slots::kValues; ++i) {
      sum += v[i] * kSumScale<C>;
    }
    const C count = C(plan.cols);
    const C first =
        p.mean ? team.template reduce<dev::Sum>(sum, memory.sum) / (count * kSumScale<C>) : C(0);
    dev::SumPair<C> pair{};
#pragma unroll
    for (int i = 0; i < Slots::kValues; ++i) {
      v[i] = slots.holds(i) ? v[i] - first : C(0);
      pair = pair.merge({v[i], v[i] * v[i]});
    }
    pair = team.template reduce<dev::Merge>(pair, memory.pair);
    C delta = p.mean ? pair.first / count : C(0);
    const C variance = pair.second / count - delta * delta;
    C rstd = rstd_of(variance, p.eps);
    if (team.any(is_huge(variance), memory.vote)) {  // all teams, as they reduce together
      const Rest<C> huge = rest_of_huge(team, v, memory.pair, count, p);
      delta = is_huge(variance) ? huge.delta : delta;
      rstd = is_huge(variance) ? huge.rstd : rstd;
    }
#pragma unroll
    for (int i = 0; i < Slots::kValues; ++i) {
      v[i] = (v[i] - delta) * rstd * weight[i] + bias[i];
    }
    slots.store(p.y + row * plan.cols, v);
    if (team.lane == 0 && row < plan.rows) {
      p.rstd[row] = rstd;
      if (p.mean) {
        p.mean[row] = first + delta;
      }
    }
  }
}

using RowMomentsMemory = dev::BlockReduceMemory<dev::Moments<double>, kRowThreads>;

// The moments of a row of x times kHugeRowScale, about 0 without a mean.
template <class T>
__device__ dev::Moments<double> moments_of_huge(const Problem<T>& p, const T* x,
                                                const dev::VectorSpan& span,
                                                RowMomentsMemory& memory) {
  using C = Compute<T>;
  constexpr int kVector = dev::kVectorOf<T>;
  dev::Moments<double> part{};
  dev::for_each_vector<kVector>(span, threadIdx.x, kRowThreads, [&](auto width, int64_t at) {
    C v[decltype(width)::value];
    dev::load_as(x + at, v);
    for (const C value : v) {
      const double scaled = static_cast<double>(value) * kHugeRowScale<C>;
      part = part.merge({1, p.mean ? scaled : 0, p.mean ? 0 : scaled * scaled});
    }
  });
  __syncthreads();  // the memory is used again
  return dev::block_reduce<dev::Merge>(part, memory);
}

template <class T>
__global__ void __launch_bounds__(kRowThreads)
    layer_norm_forward_block_per_row_kernel(Problem<T> p) {
  using C = Compute<T>;
  constexpr int kVector = dev::kVectorOf<T>;
  auto& memory = dev::shared_mem<RowMomentsMemory>();
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const T* x = p.x + row * p.cols;
    T* y = p.y + row * p.cols;
    const dev::VectorSpan span = dev::vector_span<kVector>(p.cols, x, y);
    C count = 0, shift = 0, sum = 0, squares = 0;
    dev::for_each_vector<kVector>(span, threadIdx.x, kRowThreads, [&](auto width, int64_t at) {
      C v[decltype(width)::value];
      dev::load_as(x + at, v);
      shift = count == C(0) && p.mean ? v[0] : shift;
      count += C(width());
      for (const C value : v) {
        const C d = value - shift;
        sum += d;
        squares += d * d;
      }
    });
    // Without a mean the moments are about 0: merges of equal means only add the sums of squares.
    // Threads merge in double: a large mean rounded to float would cost the deviations digits.
    const double share =
        count > C(0) && p.mean ? static_cast<double>(sum) / static_cast<double>(count) : 0;
    const dev::Moments<double> moments = dev::block_reduce<dev::Merge>(
        dev::Moments<double>{static_cast<double>(count), static_cast<double>(shift) + share,
                             static_cast<double>(squares) - share * static_cast<double>(sum)},
        memory);
    C mean = p.mean ? static_cast<C>(moments.mean) : C(0);
    C rest = p.mean ? static_cast<C>(moments.mean - static_cast<double>(mean)) : C(0);
    const C variance = static_cast<C>(moments.deviations / moments.count);
    C rstd = rstd_of(variance, p.eps);
    if (is_huge(variance)) {  // for all threads of the block alike
      const dev::Moments<double> scaled = moments_of_huge(p, x, span, memory);
      constexpr double kScale = kHugeRowScale<C>;
      mean = static_cast<C>(scaled.mean / kScale);
      rest = static_cast<C>(scaled.mean / kScale - static_cast<double>(mean));
      rstd = static_cast<C>(kScale * rstd_of(scaled.deviations / scaled.count,
                                             static_cast<double>(p.eps) * kScale * kScale));
    }
    dev::for_each_vector<kVector>(span, threadIdx.x, kRowThreads, [&](auto width, int64_t at) {
      C v[decltype(width)::value];
      dev::load_as(x + at, v);
      for (int i = 0; i < width(); ++i) {
        const C u = (v[i] - mean - rest) * rstd;
        v[i] = u * (p.weight ? p.weight[at + i] : C(1)) + (p.bias ? p.bias[at + i] : C(0));
      }
      dev::store_from(y + at, v);
    });
    if (threadIdx.x == 0) {
      p.rstd[row] = rstd;
      if (p.mean) {
        p.mean[row] = mean;
      }
    }
  }
}

void own_layer_norm_forward(const LayerNormForward& a) {
  const DenseInput x(a.x);
  const DenseOutput y(a.y);
  const int64_t rows = a.x.size(0), cols = a.x.size(1);
  dispatch_floating("layer_norm", a.x.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const Problem<T> p{.x = x.as<T>(),
                       .y = y.as<T>(),
                       .rows = rows,
                       .cols = cols,
                       .weight = a.weight.as<C>(),
                       .bias = a.bias.as<C>(),
                       .mean = a.mean.as<C>(),
                       .rstd = a.rstd.as<C>(),
                       .eps = static_cast<C>(a.eps)};
    if (fits_team<T>(cols, kMostLanes<T>)) {
      const RowPlan plan = row_plan<T>(rows, cols, cols, kMostBlocks, p.x, p.y, p.weight, p.bias);
      launch({"layer_norm_forward_team_per_row_kernel", plan.blocks, plan.threads,
              sizeof(TeamSmem<C>)},
             layer_norm_forward_team_per_row_kernel<T>, p, plan);
    } else {
      launch({"layer_norm_forward_block_per_row_kernel",
              static_cast<unsigned>(std::min(rows, kMostBlocks)), kRowThreads,
              sizeof(RowMomentsMemory)},
             layer_norm_forward_block_per_row_kernel<T>, p);
    }
  });
  y.store();
}

}  // namespace

void cuda::layer_norm_forward(const LayerNormForward& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  run_norm(a, [&] { own_layer_norm_forward(a); });
}

}  // namespace binade::kernels
