// Cross entropy fused with log-softmax. One kernel per decomposition serves the forward, the
// backward and both together: a null pointer means that this result is not wanted.
//  - team per row: the row fits the registers of a team of threads (cuda/row_team.cuh). Logits are
//    read once; maximum, sum, loss and gradient come from registers.
//  - block per row: larger vocabularies. One pass takes maximum and sum together, rescaling the sum
//    whenever the maximum grows; the gradient's pass reads the logits again, from L2, since the
//    rows in flight are far smaller than that.
// The thread that holds the target's logit writes the row's loss, so nobody reads a logit that
// another thread may have overwritten: dlogits may be logits.
#include <binade/kernels/loss/cross_entropy.h>
#include <binade/kernels/cuda/fault.cuh>
#include <binade/kernels/loss/cross_entropy_rows.cuh>

namespace binade::kernels {
namespace {

using cross_entropy::kMostLanes;
using cross_entropy::kRowThreads;
using cross_entropy::Smem;

template <class T, class C = Compute<T>>
struct Problem {
  const T* logits;
  int64_t rows, classes, stride;
  const int64_t* target;
  int64_t target_stride;
  const C* weight;     // null: all 1
  const C* known_lse;  // from the forward; null if it must be computed
  const C* row_scale;
  C* row_loss;  // null in the backward, like row_weight and lse
  C* row_weight;
  C* lse;
  T* dlogits;  // null in the forward
  int64_t dlogits_stride;
  int64_t ignore_index;
  C smoothing;
  FaultSite site;
};

// What a row needs besides its logits, the same on every thread of the row.
template <class T, class C = Compute<T>>
struct Row {
  int64_t target;
  bool ignored, bad;  // bad: the target is no class, so the results are NaN
  C target_weight;
  dev::MaxSum<C> denominator{};  // largest logit (or the known lse) and the sum of exponentials
  dev::SumPair<C> smooth{};      // sum_c w_c (max - logits_c) and sum_c w_c, with smoothing only

  __device__ Row(const Problem<T>& p, int64_t row, bool valid)
      : target(valid ? p.target[row * p.target_stride] : p.ignore_index),
        ignored(target == p.ignore_index),
        bad(!ignored && (target < 0 || target >= p.classes)),
        target_weight(ignored    ? C(0)
                      : bad      ? std::numeric_limits<C>::quiet_NaN()
                      : p.weight ? p.weight[target]
                                 : C(1)) {}

  // Differences from the largest logit keep digits that lse - x would lose.
  __device__ C loss(const Problem<T>& p, C at_target) const {
    if (ignored || bad) {
      return target_weight;
    }
    const C log_sum = std::log(denominator.sum), s = p.smoothing;
    const C nll = (C(1) - s) * target_weight * (denominator.max - at_target + log_sum);
    return s > C(0) ? nll + s / C(p.classes) * (smooth.first + log_sum * smooth.second) : nll;
  }
  __device__ void write_statistics(const Problem<T>& p, int64_t row, C at_target) const {
    if (bad) {
      dev::report_fault(p.site, target, p.classes);
    }
    p.row_loss[row] = loss(p, at_target);
    p.row_weight[row] = target_weight;
    p.lse[row] = denominator.max + std::log(denominator.sum);
  }
};

// d logit = (factor e - uniform w - [target] on_target) scale, where e is the exponential in the
// denominator. A saved lse is rounded, which scales the row by up to 1 + eps |lse|; dividing by the
// sum removes that factor.
template <class C>
struct Gradient {
  C on_target, uniform, factor, scale;

  template <class T>
  __device__ Gradient(const Problem<T>& p, const Row<T>& row, C row_scale)
      : on_target((C(1) - p.smoothing) * row.target_weight),
        uniform(p.smoothing / C(p.classes)),
        factor((on_target + uniform * row.smooth.second) / row.denominator.sum),
        scale(row_scale) {}
  __device__ __forceinline__ C value(C e, C weight, bool target) const {
    return (e * factor - uniform * weight - (target ? on_target : C(0))) * scale;
  }
};

// This thread's part of Row::smooth, and the weights of its classes.
template <class T, int kValues, class C = Compute<T>>
__device__ __forceinline__ dev::SumPair<C> smooth_sums(const Problem<T>& p,
                                                       const dev::RowSlots<T>& slots, C largest,
                                                       const C (&v)[kValues], C (&w)[kValues]) {
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    w[i] = C(1);
  }
  if (p.weight) {
    slots.load(p.weight, C(0), w);
  }
  dev::SumPair<C> smooth{};
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    if (slots.holds(i)) {
      smooth = smooth.merge({w[i] * (largest - v[i]), w[i]});
    }
  }
  return smooth;
}

// The same for logits of classes [at, at + kWidth), added to `smooth`.
template <class T, int kWidth, class C = Compute<T>>
__device__ __forceinline__ void add_smooth(const Problem<T>& p, int64_t at, C largest,
                                           const C (&v)[kWidth], dev::SumPair<C>& smooth) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const C weight = p.weight ? p.weight[at + i] : C(1);
    smooth = smooth.merge({weight * (largest - v[i]), weight});
  }
}

template <class T>
__global__ void __launch_bounds__(kMostLanes)
    cross_entropy_team_per_row_kernel(Problem<T> p, RowPlan plan) {
  using C = Compute<T>;
  using Slots = dev::RowSlots<T>;
  auto& memory = dev::shared_mem<Smem<C>>();
  dev::Team team(plan);
  for (int64_t base = int64_t{blockIdx.x} * plan.teams(); base < plan.rows;
       base += int64_t{gridDim.x} * plan.teams()) {
    const int64_t index = base + team.index;
    const bool valid = index < plan.rows;
    const Slots slots(plan, team, valid);
    Row<T> row(p, index, valid);
    C v[Slots::kValues], w[Slots::kValues];
    slots.load(p.logits + index * p.stride, -std::numeric_limits<C>::infinity(), v);
    C largest = v[0], at_target = 0, sum = 0;
    bool holds_target = (row.ignored || row.bad) && team.lane == 0;
#pragma unroll
    for (int i = 0; i < Slots::kValues; ++i) {
      largest = dev::Max::combine(largest, v[i]);
      if (slots.column(i) == row.target && slots.holds(i) && !row.ignored) {
        at_target = v[i];
        holds_target = true;
      }
    }
    if (p.known_lse) {
      largest = valid ? p.known_lse[index] : C(0);
    } else {
      largest = team.template reduce<dev::Max>(largest, memory.one);
    }
    if (p.smoothing > C(0)) {
      row.smooth =
          team.template reduce<dev::Merge>(smooth_sums(p, slots, largest, v, w), memory.team_pair);
    }
#pragma unroll
    for (int i = 0; i < Slots::kValues; ++i) {
      v[i] = dev::exp_for<T>(v[i] - largest);
      sum += v[i];
    }
    row.denominator = {largest, team.template reduce<dev::Sum>(sum, memory.one)};
    if (p.row_loss && valid && holds_target) {
      row.write_statistics(p, index, at_target);
    }
    if (p.dlogits && valid) {
      const Gradient<C> gradient(p, row, p.row_scale[index]);
#pragma unroll
      for (int i = 0; i < Slots::kValues; ++i) {
        const C weight = p.smoothing > C(0) ? w[i] : C(0);
        const C d = gradient.value(v[i], weight, slots.column(i) == row.target);
        v[i] = row.ignored ? C(0) : d;
      }
      slots.store(p.dlogits + index * p.dlogits_stride, v);
    }
  }
}

// Asks for one block per multiprocessor only: with more the compiler spills in f64.
template <class T>
__global__ void __launch_bounds__(kRowThreads, 1) cross_entropy_block_per_row_kernel(Problem<T> p) {
  using C = Compute<T>;
  constexpr int kVector = dev::kVectorOf<T>;
  auto& memory = dev::shared_mem<Smem<C>>();
  for (int64_t index = blockIdx.x; index < p.rows; index += gridDim.x) {
    const T* x = p.logits + index * p.stride;
    T* dx = p.dlogits ? p.dlogits + index * p.dlogits_stride : nullptr;
    const dev::VectorSpan span = dev::vector_span<kVector>(p.classes, x, dx);
    const auto for_each = [&](auto&& f) {
      dev::for_each_vector<kVector>(span, threadIdx.x, kRowThreads, [&](auto width, int64_t at) {
        C v[decltype(width)::value];
        dev::load_as(x + at, v);
        f(at, v);
      });
    };
    Row<T> row(p, index, true);
    C at_target = 0;
    bool holds_target = (row.ignored || row.bad) && threadIdx.x == 0;
    auto all = dev::MaxSum<C>::none();
    if (p.known_lse) {
      all.max = p.known_lse[index];
    }
    for_each([&]<int kWidth>(int64_t at, C(&v)[kWidth]) {
      all = dev::add_exponentials<T>(all, v);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        if (at + i == row.target && !row.ignored) {
          at_target = v[i];
          holds_target = true;
        }
      }
    });
    row.denominator = dev::block_reduce<dev::Merge>(all, memory.denominator);
    const C largest = row.denominator.max;
    if (p.smoothing > C(0)) {
      dev::SumPair<C> smooth{};
      for_each([&](int64_t at, auto& v) { add_smooth(p, at, largest, v, smooth); });
      row.smooth = dev::block_reduce<dev::Merge>(smooth, memory.block_pair);
    }
    if (p.row_loss && holds_target) {
      row.write_statistics(p, index, at_target);
    }
    if (dx) {
      const Gradient<C> gradient(p, row, p.row_scale[index]);
      for_each([&]<int kWidth>(int64_t at, C(&v)[kWidth]) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          const C weight = p.smoothing == C(0) ? C(0) : p.weight ? p.weight[at + i] : C(1);
          const C e = dev::exp_for<T>(v[i] - largest);
          const C d = gradient.value(e, weight, at + i == row.target);
          v[i] = row.ignored ? C(0) : d;
        }
        dev::store_from(dx + at, v);
      });
    }
  }
}

// launchers ---------------------------------------------------------------------------------------

struct Operands {
  const View& logits;
  const View& target;
  const View& weight;
  const View& known_lse = kNoView;
  const View& row_scale = kNoView;
  const View& row_loss = kNoView;
  const View& row_weight = kNoView;
  const View& lse = kNoView;
  const View& dlogits = kNoView;
  int64_t ignore_index;
  double label_smoothing;
};

void run(const Operands& a) {
  const int64_t rows = a.logits.size(0), classes = a.logits.size(1);
  if (rows == 0) {
    return;
  }
  const cross_entropy::Rows<DenseInput> logit_rows(a.logits);
  const cross_entropy::Rows<DenseOutput> gradient_rows(a.dlogits);
  const View &logits = logit_rows.view(), &dlogits = gradient_rows.view();
  dispatch_floating("cross_entropy", logits.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const Problem<T> p{.logits = logits.as<T>(),
                       .rows = rows,
                       .classes = classes,
                       .stride = logits.strides[0],
                       .target = a.target.as<int64_t>(),
                       .target_stride = a.target.strides[0],
                       .weight = a.weight.as<C>(),
                       .known_lse = a.known_lse.as<C>(),
                       .row_scale = a.row_scale.as<C>(),
                       .row_loss = a.row_loss.as<C>(),
                       .row_weight = a.row_weight.as<C>(),
                       .lse = a.lse.as<C>(),
                       .dlogits = dlogits.as<T>(),
                       .dlogits_stride = dlogits ? dlogits.strides[0] : 0,
                       .ignore_index = a.ignore_index,
                       .smoothing = static_cast<C>(a.label_smoothing),
                       .site = fault_site(logits.device, "cross_entropy", "target")};
    cross_entropy::launch_rows<T>(
        cross_entropy::Kernels<Problem<T>>{
            "cross_entropy_team_per_row_kernel", cross_entropy_team_per_row_kernel<T>,
            "cross_entropy_block_per_row_kernel", cross_entropy_block_per_row_kernel<T>},
        p, std::gcd(p.stride, p.dlogits_stride), p.logits, p.dlogits, p.weight);
  });
  gradient_rows.store();
}

}  // namespace

void cuda::cross_entropy_forward(const CrossEntropyForward& a) {
  check_arguments(a);
  run({.logits = a.logits,
       .target = a.target,
       .weight = a.weight,
       .row_loss = a.row_loss,
       .row_weight = a.row_weight,
       .lse = a.lse,
       .ignore_index = a.ignore_index,
       .label_smoothing = a.label_smoothing});
}

void cuda::cross_entropy_backward(const CrossEntropyBackward& a) {
  check_arguments(a);
  run({.logits = a.logits,
       .target = a.target,
       .weight = a.weight,
       .known_lse = a.lse,
       .row_scale = a.row_scale,
       .dlogits = a.dlogits,
       .ignore_index = a.ignore_index,
       .label_smoothing = a.label_smoothing});
}

void cuda::cross_entropy_forward_backward(const CrossEntropyForwardBackward& a) {
  check_arguments(a);
  run({.logits = a.logits,
       .target = a.target,
       .weight = a.weight,
       .row_scale = a.row_scale,
       .row_loss = a.row_loss,
       .row_weight = a.row_weight,
       .lse = a.lse,
       .dlogits = a.dlogits,
       .ignore_index = a.ignore_index,
       .label_smoothing = a.label_smoothing});
}

}  // namespace binade::kernels
