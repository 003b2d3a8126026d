// CUDA pointwise losses. One kernel per dtype and direction; a uniform switch around the arithmetic
// of a vector selects the loss. Vectors have 16 bytes if every operand's innermost dimension is
// contiguous and aligned, or one repeated element (broadcast weights, the gradient of a reduced
// loss); else work goes element by element. Sums: each thread sums in levels, a block as a tree,
// and the blocks in a second launch, in an order that depends on the shapes only.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/loss/pointwise_loss.h>
#include <binade/kernels/loss/pointwise_loss_functors.h>
#include <binade/kernels/cuda/block_reduce.cuh>
#include <binade/kernels/cuda/fault.cuh>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>
#include <binade/kernels/reduce/reducers.cuh>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostPartials = 1024;

enum class Pass : int { sum, each, of_input, of_target };
enum Operand : int { kOut, kX, kT, kWeight, kPosWeight, kUpstream, kOperands };

template <class T, class C = Compute<T>>
struct LossPlan {
  StridedIndex<kOperands> index;  // one dimension: of elements; else of vectors if there are any
  int64_t vectors, singles;       // vectors, then elements
  int32_t step;                   // index distance between vectors
  uint32_t repeated;              // bit k: operand k is one element, repeated along the vector
  PointwiseLoss op;
  C alpha;
  C scale;         // of gradients
  C divisor;       // of sums
  C* sums;         // one per block, or y
  FaultSite site;  // for bce
};

template <Pass kPass, class C, int N>
__device__ __forceinline__ void evaluate(PointwiseLoss op, const C (&x)[N], const C (&t)[N],
                                         const C (&p)[N], C alpha, C (&y)[N]) {
  const auto run = [&]<class Functor>(Functor) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if constexpr (kPass == Pass::of_input) {
        y[i] = Functor::dx(x[i], t[i], p[i], alpha);
      } else if constexpr (kPass == Pass::of_target) {
        y[i] = Functor::dt(x[i], t[i], p[i], alpha);
      } else {
        y[i] = Functor::value(x[i], t[i], p[i], alpha);
      }
    }
  };
  switch (op) {
#define BINADE_CASE(name, Functor) \
  case PointwiseLoss::name: return run(loss::Functor());
    BINADE_POINTWISE_LOSSES(BINADE_CASE)
#undef BINADE_CASE
  }
}

template <class U, class C, int N>
__device__ __forceinline__ void load(const std::byte* at, bool repeated, C (&values)[N]) {
  const U* from = reinterpret_cast<const U*>(at);
  if (N > 1 && !repeated) {
    dev::load_as(from, values);
    return;
  }
  const C value = static_cast<C>(*from);
#pragma unroll
  for (C& v : values) {
    v = value;
  }
}

// Reports probabilities outside [0, 1].
template <class C, int N>
__device__ __forceinline__ void check_probabilities(const FaultSite& site, const C (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (x[i] < C(0) || x[i] > C(1)) {
      dev::report_number(site, static_cast<double>(x[i]), 1);
    }
  }
}

// N elements from the given addresses on: returns their sum, or stores the results.
template <class T, Pass kPass, int N, class C>
__device__ __forceinline__ C run_elements(const LossPlan<T>& plan, std::byte* (&at)[kOperands]) {
  const auto repeated = [&](int k) { return (plan.repeated >> k & 1u) != 0; };
  C x[N], t[N], p[N], y[N];
  load<T>(at[kX], repeated(kX), x);
  load<T>(at[kT], repeated(kT), t);
#pragma unroll
  for (C& one : p) {
    one = C(1);
  }
  if (plan.index.data[kPosWeight]) {
    load<T>(at[kPosWeight], repeated(kPosWeight), p);
  }
  if ((kPass == Pass::sum || kPass == Pass::each) && plan.op == PointwiseLoss::bce) {
    check_probabilities(plan.site, x);
  }
  evaluate<kPass>(plan.op, x, t, p, plan.alpha, y);
  if (plan.index.data[kWeight]) {
    load<T>(at[kWeight], repeated(kWeight), p);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      y[i] *= p[i];
    }
  }
  if constexpr (kPass == Pass::sum) {
    return dev::combine_all<dev::Sum>(y);
  } else if constexpr (kPass == Pass::each) {
    dev::store_from(reinterpret_cast<C*>(at[kOut]), y);
  } else {
    load<C>(at[kUpstream], repeated(kUpstream), p);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      y[i] *= p[i] * plan.scale;
    }
    dev::store_from(reinterpret_cast<T*>(at[kOut]), y);
  }
  return C(0);
}

template <class C>
struct SumMemory {
  dev::BlockReduceMemory<C, kThreads> block;
};

template <class T, Pass kPass>
__global__ void __launch_bounds__(kThreads)
    pointwise_loss_kernel(const __grid_constant__ LossPlan<T> plan) {
  using C = Compute<T>;
  constexpr int kVector = dev::kVectorOf<T>;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  std::byte* at[kOperands];
  dev::Accumulator<dev::Scalar<dev::Sum>, C, 1> sum;
  for (int64_t i = thread; i < plan.vectors; i += threads) {
    plan.index.locate(i * plan.step, at);
    const C total[1] = {run_elements<T, kPass, kVector, C>(plan, at)};
    sum.add(total);
  }
  for (int64_t i = thread; i < plan.singles; i += threads) {
    plan.index.locate(plan.vectors * plan.step + i, at);
    const C total[1] = {run_elements<T, kPass, 1, C>(plan, at)};
    sum.add(total);
  }
  if constexpr (kPass == Pass::sum) {
    auto& memory = dev::shared_mem<SumMemory<C>>();
    const C total = dev::block_sum(sum.total(0), memory.block);
    if (threadIdx.x == 0) {
      plan.sums[blockIdx.x] = gridDim.x == 1 ? total / plan.divisor : total;
    }
  }
}

// One block: y = the sum of `count` partial sums / divisor.
template <class C>
__global__ void __launch_bounds__(kThreads)
    pointwise_loss_finish_kernel(const C* partial, int64_t count, C divisor, C* y) {
  auto& memory = dev::shared_mem<SumMemory<C>>();
  C sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    sum += partial[i];
  }
  sum = dev::block_sum(sum, memory.block);
  if (threadIdx.x == 0) {
    *y = sum / divisor;
  }
}

// launchers ---------------------------------------------------------------------------------------

// True if rows of operand k, with elements of `width` bytes, are whole aligned vectors.
bool vectorizable(const StridedLoop& loop, int k, int64_t width, int64_t count) {
  if (!loop.data(k) || (k != kOut && loop.stride(k, 0) == 0)) {
    return true;
  }
  const int64_t alignment = std::min<int64_t>(width * count, 16);
  bool aligned = loop.stride(k, 0) == width &&
                 reinterpret_cast<uintptr_t>(loop.data(k)) % static_cast<uint64_t>(alignment) == 0;
  for (int d = 1; d < loop.dims(); ++d) {
    aligned = aligned && loop.stride(k, d) % alignment == 0;
  }
  return aligned;
}

// The plan of a loop over all operands; an element of operand 0 has `out_width` bytes.
template <class T>
LossPlan<T> plan_of(const StridedLoop& loop, int64_t out_width) {
  constexpr int kVector = dev::kVectorOf<T>;
  LossPlan<T> plan{};
  plan.index = StridedIndex<kOperands>(loop);
  plan.singles = loop.numel();
  plan.step = 1;
  bool whole = loop.dims() == 1 || loop.size(0) % kVector == 0;
  for (int k = 0; k < kOperands; ++k) {
    const int64_t width = k == kOut        ? out_width
                          : k == kUpstream ? static_cast<int64_t>(sizeof(Compute<T>))
                                           : static_cast<int64_t>(sizeof(T));
    plan.repeated |= static_cast<uint32_t>(loop.stride(k, 0) == 0) << k;
    whole = whole && vectorizable(loop, k, width, kVector);
  }
  if (!whole) {
    return plan;
  }
  plan.vectors = loop.numel() / kVector;
  plan.singles = loop.numel() % kVector;
  if (loop.dims() == 1) {
    plan.step = kVector;
    return plan;
  }
  plan.index.set_size(0, loop.size(0) / kVector);
  for (auto& stride : plan.index.stride) {
    stride[0] *= kVector;
  }
  return plan;
}

template <class T, Pass kPass>
void start(const LossPlan<T>& plan, unsigned blocks) {
  constexpr size_t kShared = kPass == Pass::sum ? sizeof(SumMemory<Compute<T>>) : 0;
  launch({"pointwise_loss_kernel", blocks, kThreads, kShared}, pointwise_loss_kernel<T, kPass>,
         plan);
}

template <class T>
unsigned blocks_of(const LossPlan<T>& plan) {
  return grid_blocks(std::max(plan.vectors, plan.singles), kThreads);
}

template <class T>
void reduce(LossPlan<T> plan, const View& y, double divisor) {
  using C = Compute<T>;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(blocks_of(plan), kMostPartials));
  plan.divisor = static_cast<C>(divisor);
  if (blocks == 1) {
    plan.sums = y.as<C>();
    return start<T, Pass::sum>(plan, 1);
  }
  const Workspace workspace(blocks * sizeof(C), y.device);
  plan.sums = workspace.as<C>();
  start<T, Pass::sum>(plan, blocks);
  launch({"pointwise_loss_finish_kernel", 1, kThreads, sizeof(SumMemory<C>)},
         pointwise_loss_finish_kernel<C>, plan.sums, int64_t{blocks}, plan.divisor, y.as<C>());
}

}  // namespace

void cuda::pointwise_loss_forward(const PointwiseLossForward& a) {
  check_arguments(a);
  if (a.each && a.x.numel == 0) {
    return;
  }
  const View& out = a.each ? a.y : a.x;
  const StridedLoop loop(to_string(a.op), {&out, &a.x, &a.t, &a.weight, &a.pos_weight, &kNoView});
  dispatch_floating(to_string(a.op), a.x.dtype, [&]<class T>(Type<T>) {
    auto plan = plan_of<T>(loop, static_cast<int64_t>(size_of(out.dtype)));
    plan.op = a.op;
    plan.alpha = static_cast<Compute<T>>(a.alpha);
    plan.site = fault_site(a.x.device, "bce", "input");
    a.each ? start<T, Pass::each>(plan, blocks_of(plan)) : reduce(plan, a.y, a.divisor);
  });
}

void cuda::pointwise_loss_backward(const PointwiseLossBackward& a) {
  check_arguments(a);
  for (const View* out : {&a.dx, &a.dt}) {
    if (!*out || out->numel == 0) {
      continue;
    }
    const StridedLoop loop(to_string(a.op), {out, &a.x, &a.t, &a.weight, &a.pos_weight, &a.dy});
    dispatch_floating(to_string(a.op), a.x.dtype, [&]<class T>(Type<T>) {
      auto plan = plan_of<T>(loop, sizeof(T));
      plan.op = a.op;
      plan.alpha = static_cast<Compute<T>>(a.alpha);
      plan.scale = static_cast<Compute<T>>(1 / a.divisor);
      out == &a.dx ? start<T, Pass::of_input>(plan, blocks_of(plan))
                   : start<T, Pass::of_target>(plan, blocks_of(plan));
    });
  }
}

}  // namespace binade::kernels
