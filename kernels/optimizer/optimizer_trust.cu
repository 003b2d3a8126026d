// LAMB and LARS on a device. A block takes one chunk of a parameter, as 16-byte vectors: first for
// partial sums of squares, in double, then for the update. In between, one block per parameter adds
// the partials in a fixed order. LAMB's direction is computed twice from its moments: this reads as
// many bytes as a stored direction would, and needs no memory.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/optimizer/optimizer_trust_internal.h>
#include <binade/kernels/cuda/block_reduce.cuh>
#include <binade/kernels/optimizer/step_arrays.cuh>

#include <cmath>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

using dev::Arrays, dev::load_parameters, dev::store_parameters;
using Sums = dev::SumPair<double>;
using SumsMemory = dev::BlockReduceMemory<Sums, kThreads>;

struct Table {
  const TrustChunk* chunks;
  const TrustItem* items;
  int64_t origin, first_chunk, first_item;
  double* ratios;
};

Table table_of(const TrustTable& t) {
  return {t.chunks.as<TrustChunk>(), t.items.as<TrustItem>(), t.origin, t.first_chunk, t.first_item,
          t.ratios.as<double>()};
}

// The elements of a block's chunk, which starts `begin` elements into the range.
template <class T, class... S>
__device__ __forceinline__ dev::VectorSpan chunk_span(const Arrays<T>& a, int64_t begin,
                                                      int64_t count, S*... state) {
  const auto* master = a.master ? a.master + begin : nullptr;
  const auto* compensation = a.compensation ? a.compensation + begin : nullptr;
  return dev::vector_span<dev::kVectorOf<T>>(count, a.param + begin, master, a.grad + begin,
                                             compensation, (state + begin)...);
}

template <class T, class F>
__device__ __forceinline__ void for_block_vectors(const dev::VectorSpan& span, F&& f) {
  dev::for_each_vector<dev::kVectorOf<T>>(span, threadIdx.x, kThreads, static_cast<F&&>(f));
}

template <class C>
__device__ __forceinline__ void add_square(double& sum, C value) {
  sum += static_cast<double>(value) * static_cast<double>(value);
}

template <class C>
struct LambState {
  C *first, *second;
};

template <class C>
struct LambNumbers {
  C beta2, rest2, eps, decay;
};

template <class C>
__device__ __forceinline__ C lamb_direction(const RangeScalars& w, const LambNumbers<C>& o, C m,
                                            C v, C p) {
  return static_cast<C>(w.first_scale) * m /
             (std::sqrt(v) * static_cast<C>(w.second_scale) + o.eps) +
         o.decay * p;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    lamb_measure_kernel(const __grid_constant__ Table table, const __grid_constant__ Arrays<T> a,
                        const __grid_constant__ LambState<Compute<T>> state,
                        const __grid_constant__ LambNumbers<Compute<T>> o,
                        const __grid_constant__ RangeScalars given,
                        const RangeScalars* step_scalars, Sums* partials) {
  using C = Compute<T>;
  auto& memory = dev::shared_mem<SumsMemory>();
  const RangeScalars w = step_scalars ? *step_scalars : given;
  const TrustChunk chunk = table.chunks[blockIdx.x];
  const int64_t begin = chunk.begin - table.origin;
  const C scale = static_cast<C>(w.multiplier);
  const C beta1 = static_cast<C>(w.momentum), rest1 = static_cast<C>(1 - w.momentum);
  const auto span = chunk_span(a, begin, w.apply == 0 ? 0 : chunk.count, state.first, state.second);
  Sums sums{0, 0};
  for_block_vectors<T>(span, [&](auto width, int64_t i) {
    constexpr int kWidth = decltype(width)::value;
    const int64_t at = begin + i;
    C p[kWidth], g[kWidth], m[kWidth], v[kWidth];
    load_parameters(a, at, p);
    dev::load_as(a.grad + at, g);
    dev::load_as(state.first + at, m);
    dev::load_as(state.second + at, v);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      g[k] *= scale;
      m[k] = beta1 * m[k] + rest1 * g[k];
      v[k] = o.beta2 * v[k] + o.rest2 * g[k] * g[k];
      add_square(sums.first, p[k]);
      add_square(sums.second, lamb_direction(w, o, m[k], v[k], p[k]));
    }
    dev::store_from(state.first + at, m);
    dev::store_from(state.second + at, v);
  });
  sums = dev::block_reduce<dev::Merge>(sums, memory);
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = sums;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    lamb_update_kernel(Table table, Arrays<T> a, LambState<Compute<T>> state,
                       LambNumbers<Compute<T>> o, RangeScalars given,
                       const RangeScalars* step_scalars) {
  using C = Compute<T>;
  const RangeScalars w = step_scalars ? *step_scalars : given;
  if (w.apply == 0) {
    return;
  }
  const TrustChunk chunk = table.chunks[blockIdx.x];
  const int64_t begin = chunk.begin - table.origin;
  const C rate = static_cast<C>(w.lr * table.ratios[chunk.item - table.first_item]);
  const auto span = chunk_span(a, begin, chunk.count, state.first, state.second);
  for_block_vectors<T>(span, [&](auto width, int64_t i) {
    constexpr int kWidth = decltype(width)::value;
    const int64_t at = begin + i;
    C p[kWidth], m[kWidth], v[kWidth];
    load_parameters(a, at, p);
    dev::load_as(state.first + at, m);
    dev::load_as(state.second + at, v);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      p[k] -= rate * lamb_direction(w, o, m[k], v[k], p[k]);
    }
    store_parameters(a, at, p, step_scalars ? static_cast<int64_t>(w.update) : -1);
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    lars_measure_kernel(Table table, Arrays<T> a, RangeScalars given,
                        const RangeScalars* step_scalars, Sums* partials) {
  using C = Compute<T>;
  auto& memory = dev::shared_mem<SumsMemory>();
  const RangeScalars w = step_scalars ? *step_scalars : given;
  const TrustChunk chunk = table.chunks[blockIdx.x];
  const int64_t begin = chunk.begin - table.origin;
  const C scale = static_cast<C>(w.multiplier);
  const auto span = chunk_span(a, begin, w.apply == 0 ? 0 : chunk.count);
  Sums sums{0, 0};
  for_block_vectors<T>(span, [&](auto width, int64_t i) {
    constexpr int kWidth = decltype(width)::value;
    C p[kWidth], g[kWidth];
    load_parameters(a, begin + i, p);
    dev::load_as(a.grad + begin + i, g);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      add_square(sums.first, p[k]);
      add_square(sums.second, g[k] * scale);
    }
  });
  sums = dev::block_reduce<dev::Merge>(sums, memory);
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = sums;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    lars_update_kernel(Table table, Arrays<T> a, Compute<T>* buffer, Compute<T> decay,
                       RangeScalars given, const RangeScalars* step_scalars) {
  using C = Compute<T>;
  const RangeScalars w = step_scalars ? *step_scalars : given;
  if (w.apply == 0) {
    return;
  }
  const TrustChunk chunk = table.chunks[blockIdx.x];
  const int64_t begin = chunk.begin - table.origin;
  const C rate = static_cast<C>(w.lr * table.ratios[chunk.item - table.first_item]);
  const C scale = static_cast<C>(w.multiplier), momentum = static_cast<C>(w.momentum);
  const auto span = chunk_span(a, begin, chunk.count, buffer);
  for_block_vectors<T>(span, [&](auto width, int64_t i) {
    constexpr int kWidth = decltype(width)::value;
    const int64_t at = begin + i;
    C p[kWidth], g[kWidth], b[kWidth];
    load_parameters(a, at, p);
    dev::load_as(a.grad + at, g);
    dev::load_as(buffer + at, b);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      b[k] = momentum * b[k] + rate * (g[k] * scale + decay * p[k]);
      p[k] -= b[k];
    }
    dev::store_from(buffer + at, b);
    store_parameters(a, at, p, step_scalars ? static_cast<int64_t>(w.update) : -1);
  });
}

__global__ void __launch_bounds__(kThreads)
    trust_ratio_kernel(Table table, TrustRule rule, const Sums* partials) {
  auto& memory = dev::shared_mem<SumsMemory>();
  const TrustItem item = table.items[blockIdx.x];
  Sums sums{0, 0};
  for (int64_t row = item.first + threadIdx.x; row < item.last; row += kThreads) {
    sums = sums.merge(partials[row - table.first_chunk]);
  }
  sums = dev::block_reduce<dev::Merge>(sums, memory);
  if (threadIdx.x == 0) {
    table.ratios[blockIdx.x] = trust_ratio(rule, {sums.first, sums.second});
  }
}

void find_ratios(const TrustTable& table, const TrustRule& rule, const Sums* partials) {
  launch({"trust_ratio_kernel", static_cast<unsigned>(table.items.sizes[0]), kThreads,
          sizeof(SumsMemory)},
         trust_ratio_kernel, table_of(table), rule, partials);
}

Workspace partials_of(const TrustTable& table, Device device) {
  return Workspace(static_cast<size_t>(table.chunks.sizes[0]) * sizeof(Sums), device);
}

}  // namespace

void cuda::lamb_step(const LAMBStep& a) {
  check_arguments(a);
  const auto blocks = static_cast<unsigned>(a.table.chunks.sizes[0]);
  if (blocks == 0) {
    return;
  }
  const Workspace memory = partials_of(a.table, a.param.device);
  dispatch_floating("lamb_step", a.param.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const Arrays<T> own = dev::arrays<T>(a.param, a.master, a.grad, a.low);
    const LambState<C> state{a.exp_avg.as<C>(), a.exp_avg_sq.as<C>()};
    const LambNumbers<C> numbers{static_cast<C>(a.beta2), static_cast<C>(1 - a.beta2),
                                 static_cast<C>(a.eps), static_cast<C>(a.weight_decay)};
    const RangeScalars given = step_scalars_of(a);
    const auto* step_scalars = a.step_scalars.as<RangeScalars>();
    launch({"lamb_measure_kernel", blocks, kThreads, sizeof(SumsMemory)}, lamb_measure_kernel<T>,
           table_of(a.table), own, state, numbers, given, step_scalars, memory.as<Sums>());
    find_ratios(a.table, rule_of(a), memory.as<Sums>());
    launch({"lamb_update_kernel", blocks, kThreads}, lamb_update_kernel<T>, table_of(a.table), own,
           state, numbers, given, step_scalars);
  });
}

void cuda::lars_step(const LARSStep& a) {
  check_arguments(a);
  const auto blocks = static_cast<unsigned>(a.table.chunks.sizes[0]);
  if (blocks == 0) {
    return;
  }
  const Workspace memory = partials_of(a.table, a.param.device);
  dispatch_floating("lars_step", a.param.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const Arrays<T> own = dev::arrays<T>(a.param, a.master, a.grad, a.low);
    const RangeScalars given = step_scalars_of(a);
    const auto* step_scalars = a.step_scalars.as<RangeScalars>();
    launch({"lars_measure_kernel", blocks, kThreads, sizeof(SumsMemory)}, lars_measure_kernel<T>,
           table_of(a.table), own, given, step_scalars, memory.as<Sums>());
    find_ratios(a.table, rule_of(a), memory.as<Sums>());
    launch({"lars_update_kernel", blocks, kThreads}, lars_update_kernel<T>, table_of(a.table), own,
           a.momentum_buffer.as<C>(), static_cast<C>(a.weight_decay), given, step_scalars);
  });
}

}  // namespace binade::kernels
