// Cross entropy with probabilities. One kernel per decomposition serves both directions: a null
// pointer means that this result is not wanted.
//  - team per row: logits and targets of the row stay in the registers of a team of threads.
//  - block per row: larger vocabularies. One pass computes maximum and sum together, the next the
//    weighted sums as distances from the maximum, which keeps their digits. This pass and the one
//    for the gradient read the row again, from L2.
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/loss/soft_cross_entropy.h>
#include <binade/kernels/loss/cross_entropy_rows.cuh>

namespace binade::kernels {
namespace {

using cross_entropy::kMostLanes;
using cross_entropy::kRowThreads;
using cross_entropy::Smem;

template <class T, class C = Compute<T>>
struct Problem {
  const T* logits;
  const T* target;
  int64_t rows, classes, stride, target_stride;
  const C* weight;  // null: all 1
  C keep, uniform;  // q = keep target + uniform
  C* row_loss;      // null in the backward
  const C* row_scale;
  T* dlogits;  // null in the forward
  int64_t dlogits_stride;

  __device__ __forceinline__ C share(C target_value, int64_t column) const {
    const C q = keep * target_value + uniform;
    return weight ? q * weight[column] : q;
  }
};

template <class T>
__global__ void __launch_bounds__(kMostLanes)
    soft_cross_entropy_team_per_row_kernel(Problem<T> p, RowPlan plan) {
  using C = Compute<T>;
  using Slots = dev::RowSlots<T>;
  auto& memory = dev::shared_mem<Smem<C>>();
  dev::Team team(plan);
  for (int64_t base = int64_t{blockIdx.x} * plan.teams(); base < plan.rows;
       base += int64_t{gridDim.x} * plan.teams()) {
    const int64_t row = base + team.index;
    const bool valid = row < plan.rows;
    const Slots slots(plan, team, valid);
    C v[Slots::kValues], q[Slots::kValues];
    slots.load(p.logits + row * p.stride, -std::numeric_limits<C>::infinity(), v);
    slots.load(p.target + row * p.target_stride, C(0), q);
    C largest = v[0], sum = 0;
#pragma unroll
    for (int i = 1; i < Slots::kValues; ++i) {
      largest = dev::Max::combine(largest, v[i]);
    }
    largest = team.template reduce<dev::Max>(largest, memory.one);
    dev::SumPair<C> shares{};  // sum of q, and of q (max - z)
#pragma unroll
    for (int i = 0; i < Slots::kValues; ++i) {
      if (slots.holds(i)) {
        q[i] = p.share(q[i], slots.column(i));
        shares = shares.merge({q[i], q[i] * (largest - v[i])});
      }
      v[i] = dev::exp_for<T>(v[i] - largest);
      sum += v[i];
    }
    sum = team.template reduce<dev::Sum>(sum, memory.one);
    shares = team.template reduce<dev::Merge>(shares, memory.team_pair);
    if (p.row_loss && valid && team.lane == 0) {
      p.row_loss[row] = shares.second + std::log(sum) * shares.first;
    }
    if (p.dlogits && valid) {
      const C scale = p.row_scale[row], factor = shares.first / sum;
#pragma unroll
      for (int i = 0; i < Slots::kValues; ++i) {
        v[i] = (v[i] * factor - q[i]) * scale;
      }
      slots.store(p.dlogits + row * p.dlogits_stride, v);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kRowThreads, 1)
    soft_cross_entropy_block_per_row_kernel(Problem<T> p) {
  using C = Compute<T>;
  constexpr int kVector = dev::kVectorOf<T>;
  auto& memory = dev::shared_mem<Smem<C>>();
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const T *x = p.logits + row * p.stride, *t = p.target + row * p.target_stride;
    T* dx = p.dlogits ? p.dlogits + row * p.dlogits_stride : nullptr;
    const dev::VectorSpan span = dev::vector_span<kVector>(p.classes, x, t, dx);
    const auto for_each = [&](auto&& f) {
      dev::for_each_vector<kVector>(span, threadIdx.x, kRowThreads, [&](auto width, int64_t at) {
        C v[decltype(width)::value], q[decltype(width)::value];
        dev::load_as(x + at, v);
        dev::load_as(t + at, q);
        f(at, v, q);
      });
    };
    auto all = dev::MaxSum<C>::none();
    for_each([&]<int kWidth>(int64_t, C(&v)[kWidth], C(&)[kWidth]) {
      all = dev::add_exponentials<T>(all, v);
    });
    all = dev::block_reduce<dev::Merge>(all, memory.denominator);
    dev::SumPair<C> shares{};
    for_each([&]<int kWidth>(int64_t at, C(&v)[kWidth], C(&q)[kWidth]) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const C share = p.share(q[i], at + i);
        shares = shares.merge({share, share * (all.max - v[i])});
      }
    });
    shares = dev::block_reduce<dev::Merge>(shares, memory.block_pair);
    if (p.row_loss && threadIdx.x == 0) {
      p.row_loss[row] = shares.second + std::log(all.sum) * shares.first;
    }
    if (dx) {
      const C scale = p.row_scale[row], factor = shares.first / all.sum;
      for_each([&]<int kWidth>(int64_t at, C(&v)[kWidth], C(&q)[kWidth]) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          v[i] = (dev::exp_for<T>(v[i] - all.max) * factor - p.share(q[i], at + i)) * scale;
        }
        dev::store_from(dx + at, v);
      });
    }
  }
}

// launchers ---------------------------------------------------------------------------------------

// Results that are not wanted are kNoView.
struct Operands {
  const View& logits;
  const View& target;
  const View& weight;
  double label_smoothing;
  const View& row_loss = kNoView;
  const View& row_scale = kNoView;
  const View& dlogits = kNoView;
};

void run(const Operands& a) {
  const int64_t rows = a.logits.size(0), classes = a.logits.size(1);
  if (rows == 0 || classes == 0) {
    if (a.row_loss) {
      kernels::fill({.y = a.row_loss, .value = 0});
    }
    return;
  }
  const cross_entropy::Rows<DenseInput> logit_rows(a.logits), target_rows(a.target);
  const cross_entropy::Rows<DenseOutput> gradient_rows(a.dlogits);
  const View &logits = logit_rows.view(), &target = target_rows.view(),
             &dlogits = gradient_rows.view();
  dispatch_floating("cross_entropy", logits.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const Problem<T> p{.logits = logits.as<T>(),
                       .target = target.as<T>(),
                       .rows = rows,
                       .classes = classes,
                       .stride = logits.strides[0],
                       .target_stride = target.strides[0],
                       .weight = a.weight.as<C>(),
                       .keep = static_cast<C>(1 - a.label_smoothing),
                       .uniform = static_cast<C>(a.label_smoothing / static_cast<double>(classes)),
                       .row_loss = a.row_loss.as<C>(),
                       .row_scale = a.row_scale.as<C>(),
                       .dlogits = dlogits.as<T>(),
                       .dlogits_stride = dlogits ? dlogits.strides[0] : 0};
    const int64_t stride = std::gcd(std::gcd(p.stride, p.target_stride), p.dlogits_stride);
    cross_entropy::launch_rows<T>(
        cross_entropy::Kernels<Problem<T>>{
            "soft_cross_entropy_team_per_row_kernel", soft_cross_entropy_team_per_row_kernel<T>,
            "soft_cross_entropy_block_per_row_kernel", soft_cross_entropy_block_per_row_kernel<T>},
        p, stride, p.logits, p.target, p.dlogits);
  });
  gradient_rows.store();
}

}  // namespace

void cuda::soft_cross_entropy_forward(const SoftCrossEntropyForward& a) {
  check_arguments(a);
  run({.logits = a.logits,
       .target = a.target,
       .weight = a.weight,
       .label_smoothing = a.label_smoothing,
       .row_loss = a.row_loss});
}

void cuda::soft_cross_entropy_backward(const SoftCrossEntropyBackward& a) {
  check_arguments(a);
  run({.logits = a.logits,
       .target = a.target,
       .weight = a.weight,
       .label_smoothing = a.label_smoothing,
       .row_scale = a.row_scale,
       .dlogits = a.dlogits});
}

}  // namespace binade::kernels
