// RMSprop and Adagrad on a device: their rules for dev::run_step
// (kernels/optimizer/step_kernel.cuh).
#include <binade/kernels/optimizer/optimizer_adaptive_internal.h>
#include <binade/kernels/optimizer/step_kernel.cuh>

#include <cmath>

namespace binade::kernels {
namespace {

template <class C>
struct RMSprop {
  C *squares, *means, *buffer;  // means: centered, else null; buffer: with momentum, else null
  C decay, alpha, rest, eps;

  struct Now {
    C lr, momentum;
  };
  __device__ __forceinline__ Now now(const RangeScalars& w) const {
    return {static_cast<C>(w.lr), static_cast<C>(w.momentum)};
  }
  template <int kWidth>
  __device__ __forceinline__ void update(const Now& now, int64_t at, C (&p)[kWidth],
                                         C (&g)[kWidth]) const {
    C v[kWidth], mean[kWidth] = {}, b[kWidth] = {};
    dev::load_as(squares + at, v);
    if (means) {
      dev::load_as(means + at, mean);
    }
    if (buffer) {
      dev::load_as(buffer + at, b);
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      v[i] = alpha * v[i] + rest * g[i] * g[i];
      mean[i] = alpha * mean[i] + rest * g[i];
    }
    dev::store_from(squares + at, v);  // before the divisions, which need registers
    if (means) {
      dev::store_from(means + at, mean);
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if (means) {
        v[i] -= mean[i] * mean[i];
        v[i] = v[i] < C(0) ? C(0) : v[i];  // keeps NaN
      }
      b[i] = now.momentum * b[i] + g[i] / (std::sqrt(v[i]) + eps);  // without a buffer b was 0
      p[i] -= now.lr * b[i];
    }
    if (buffer) {
      dev::store_from(buffer + at, b);
    }
  }
};

template <class C>
struct Adagrad {
  C* sum;
  C decay, eps;
  double lr_decay;

  struct Now {
    C rate;
  };
  __device__ __forceinline__ Now now(const RangeScalars& w) const {
    return {static_cast<C>(adagrad_rate(w, lr_decay))};
  }
  template <int kWidth>
  __device__ __forceinline__ void update(const Now& now, int64_t at, C (&p)[kWidth],
                                         C (&g)[kWidth]) const {
    C total[kWidth];
    dev::load_as(sum + at, total);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      total[i] += g[i] * g[i];
    }
    dev::store_from(sum + at, total);  // before the divisions, which need registers
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      p[i] -= now.rate * g[i] / (std::sqrt(total[i]) + eps);
    }
  }
};

template <class T>
__global__ void __launch_bounds__(dev::kStepThreads)
    rmsprop_step_kernel(const __grid_constant__ dev::Step<T, RMSprop> step) {
  dev::run_step(step);
}

template <class T>
__global__ void __launch_bounds__(dev::kStepThreads)
    adagrad_step_kernel(const __grid_constant__ dev::Step<T, Adagrad> step) {
  dev::run_step(step);
}

}  // namespace

void cuda::rmsprop_step(const RMSpropStep& a) {
  check_arguments(a);
  dispatch_floating("rmsprop_step", a.param.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const RMSprop<C> rule{.squares = a.square_avg.as<C>(),
                          .means = a.grad_avg.as<C>(),
                          .buffer = a.momentum_buffer.as<C>(),
                          .decay = static_cast<C>(a.weight_decay),
                          .alpha = static_cast<C>(a.alpha),
                          .rest = static_cast<C>(1 - a.alpha),
                          .eps = static_cast<C>(a.eps)};
    dev::launch_step("rmsprop_step_kernel", rmsprop_step_kernel<T>, a, rule, rule.squares,
                     rule.means, rule.buffer);
  });
}

void cuda::adagrad_step(const AdagradStep& a) {
  check_arguments(a);
  dispatch_floating("adagrad_step", a.param.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const Adagrad<C> rule{.sum = a.sum.as<C>(),
                          .decay = static_cast<C>(a.weight_decay),
                          .eps = static_cast<C>(a.eps),
                          .lr_decay = a.lr_decay};
    dev::launch_step("adagrad_step_kernel", adagrad_step_kernel<T>, a, rule, rule.sum);
  });
}

}  // namespace binade::kernels
