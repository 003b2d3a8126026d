// SGD and Adam on a device: their rules for dev::run_step (kernels/optimizer/step_kernel.cuh).
#include <binade/kernels/optimizer/optimizer_internal.h>
#include <binade/kernels/optimizer/step_kernel.cuh>

#include <cmath>

namespace binade::kernels {
namespace {

template <class C>
struct SGD {
  C* buffer;  // or null
  C decay, undamped;
  bool nesterov;

  struct Now {
    C lr, momentum;
    bool first;
  };
  __device__ __forceinline__ Now now(const RangeScalars& w) const {
    return {static_cast<C>(w.lr), static_cast<C>(w.momentum), w.update == 1};
  }
  template <int kWidth>
  __device__ __forceinline__ void update(const Now& now, int64_t at, C (&p)[kWidth],
                                         C (&g)[kWidth]) const {
    C b[kWidth] = {};
    if (buffer && !now.first) {
      dev::load_as(buffer + at, b);
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if (buffer) {
        b[i] = now.first ? g[i] : b[i] * now.momentum + undamped * g[i];
        g[i] = nesterov ? g[i] + now.momentum * b[i] : b[i];
      }
      p[i] -= now.lr * g[i];
    }
    if (buffer) {
      dev::store_from(buffer + at, b);
    }
  }
};

template <class C>
struct Adam {
  C *first, *second, *largest;  // largest: AMSGrad, else null
  C decay, beta2, rest2, eps;
  double decoupled_decay;

  struct Now {
    C beta1, rest1, step_size, second_scale, shrink;
  };
  __device__ __forceinline__ Now now(const RangeScalars& w) const {
    return {static_cast<C>(w.momentum), static_cast<C>(1 - w.momentum),
            static_cast<C>(w.lr * w.first_scale), static_cast<C>(w.second_scale),
            static_cast<C>(1 - w.lr * decoupled_decay)};
  }
  template <int kWidth>
  __device__ __forceinline__ void update(const Now& now, int64_t at, C (&p)[kWidth],
                                         C (&g)[kWidth]) const {
    C m[kWidth], v[kWidth], top[kWidth];
    dev::load_as(first + at, m);
    dev::load_as(second + at, v);
    if (largest) {
      dev::load_as(largest + at, top);
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      m[i] = now.beta1 * m[i] + now.rest1 * g[i];
      v[i] = beta2 * v[i] + rest2 * g[i] * g[i];
      top[i] = largest && !(v[i] > top[i]) ? top[i] : v[i];
      p[i] =
          p[i] * now.shrink - now.step_size * m[i] / (std::sqrt(top[i]) * now.second_scale + eps);
    }
    dev::store_from(first + at, m);
    dev::store_from(second + at, v);
    if (largest) {
      dev::store_from(largest + at, top);
    }
  }
};

template <class T>
__global__ void __launch_bounds__(dev::kStepThreads)
    sgd_step_kernel(const __grid_constant__ dev::Step<T, SGD> step) {
  dev::run_step(step);
}

template <class T>
__global__ void __launch_bounds__(dev::kStepThreads)
    adam_step_kernel(const __grid_constant__ dev::Step<T, Adam> step) {
  dev::run_step(step);
}

}  // namespace

void cuda::sgd_step(const SGDStep& a) {
  check_arguments(a);
  dispatch_floating("sgd_step", a.param.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const SGD<C> rule{.buffer = a.momentum_buffer.as<C>(),
                      .decay = static_cast<C>(a.weight_decay),
                      .undamped = static_cast<C>(1 - a.dampening),
                      .nesterov = a.nesterov};
    dev::launch_step("sgd_step_kernel", sgd_step_kernel<T>, a, rule, rule.buffer);
  });
}

void cuda::adam_step(const AdamStep& a) {
  check_arguments(a);
  dispatch_floating("adam_step", a.param.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const Adam<C> rule{.first = a.exp_avg.as<C>(),
                       .second = a.exp_avg_sq.as<C>(),
                       .largest = a.max_exp_avg_sq.as<C>(),
                       .decay = static_cast<C>(a.decoupled ? 0 : a.weight_decay),
                       .beta2 = static_cast<C>(a.beta2),
                       .rest2 = static_cast<C>(1 - a.beta2),
                       .eps = static_cast<C>(a.eps),
                       .decoupled_decay = a.decoupled ? a.weight_decay : 0};
    dev::launch_step("adam_step_kernel", adam_step_kernel<T>, a, rule, rule.first, rule.second,
                     rule.largest);
  });
}

}  // namespace binade::kernels
