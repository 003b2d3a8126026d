// NAdam and RAdam on a device: their rule for dev::run_step (kernels/optimizer/step_kernel.cuh). If
// only the device knows the step, one thread computes its numbers first, which take a loop.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/optimizer/optimizer_moment_internal.h>
#include <binade/kernels/optimizer/step_kernel.cuh>

#include <cmath>

namespace binade::kernels {
namespace {

template <class C>
struct Moment {
  C *first, *second;
  C decay, beta2, rest2, eps;
  double decoupled_decay;
  MomentNumbers given;
  const MomentNumbers* computed;  // null: given

  struct Now {
    C beta1, rest1, shrink, gradient, average, root;
    bool adaptive;
  };
  __device__ __forceinline__ Now now(const RangeScalars& w) const {
    const MomentNumbers numbers = computed ? *computed : given;
    return {static_cast<C>(w.momentum),
            static_cast<C>(1 - w.momentum),
            static_cast<C>(1 - w.lr * decoupled_decay),
            static_cast<C>(numbers.gradient),
            static_cast<C>(numbers.average),
            static_cast<C>(numbers.root),
            numbers.adaptive != 0};
  }
  template <int kWidth>
  __device__ __forceinline__ void update(const Now& now, int64_t at, C (&p)[kWidth],
                                         C (&g)[kWidth]) const {
    C m[kWidth], v[kWidth];
    dev::load_as(first + at, m);
    dev::load_as(second + at, v);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      m[i] = now.beta1 * m[i] + now.rest1 * g[i];
      v[i] = beta2 * v[i] + rest2 * g[i] * g[i];
      const C step = now.gradient * g[i] + now.average * m[i];
      p[i] = p[i] * now.shrink - (now.adaptive ? step / (std::sqrt(v[i]) * now.root + eps) : step);
    }
    dev::store_from(first + at, m);
    dev::store_from(second + at, v);
  }
};

__global__ void __launch_bounds__(1)
    moment_numbers_kernel(const MomentSource source, const RangeScalars* step_scalars,
                          MomentNumbers* numbers) {
  *numbers = moment_numbers(source, *step_scalars);
}

template <class T>
__global__ void __launch_bounds__(dev::kStepThreads)
    moment_step_kernel(const __grid_constant__ dev::Step<T, Moment> step) {
  dev::run_step(step);
}

}  // namespace

void cuda::moment_step(const MomentStep& a) {
  check_arguments(a);
  if (a.param.numel == 0) {
    return;
  }
  const MomentSource source = {a.rule, a.beta2, a.momentum_decay};
  const Workspace numbers(sizeof(MomentNumbers), a.param.device);
  if (a.step_scalars) {
    launch({"moment_numbers_kernel", 1, 1}, moment_numbers_kernel, source,
           a.step_scalars.as<const RangeScalars>(), numbers.as<MomentNumbers>());
  }
  dispatch_floating("moment_step", a.param.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const Moment<C> rule{
        .first = a.exp_avg.as<C>(),
        .second = a.exp_avg_sq.as<C>(),
        .decay = static_cast<C>(a.decoupled ? 0 : a.weight_decay),
        .beta2 = static_cast<C>(a.beta2),
        .rest2 = static_cast<C>(1 - a.beta2),
        .eps = static_cast<C>(a.eps),
        .decoupled_decay = a.decoupled ? a.weight_decay : 0,
        .given = a.step_scalars ? MomentNumbers{} : moment_numbers(source, step_scalars_of(a)),
        .computed = a.step_scalars ? numbers.as<const MomentNumbers>() : nullptr};
    dev::launch_step("moment_step_kernel", moment_step_kernel<T>, a, rule, rule.first, rule.second);
  });
}

}  // namespace binade::kernels
