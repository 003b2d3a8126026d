// Optimizer steps on a device: one pass over memory. A thread takes as many neighbouring elements
// as 16 bytes hold of the parameter's type (8 of f16, 4 of f32) and reads gradient, parameter or
// master, and state; unscaling, clipping, decay and update happen in registers; it writes state,
// master and the rounded parameter. The numbers of the step come by value or, where the host does
// not know them, from words in device memory; a step that those skip ends at once.
#include <binade/kernels/optimizer_checks.h>
#include <binade/kernels/cuda/step_arrays.cuh>

#include <cmath>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

using dev::Arrays, dev::load_parameters, dev::store_parameters;

template <class C>
struct SgdNumbers {
  C undamped, decay;
  bool nesterov;
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    sgd_step_kernel(dev::VectorSpan span, Arrays<T> a, Compute<T>* buffer, SgdNumbers<Compute<T>> o,
                    StretchWords given, const StretchWords* words) {
  using C = Compute<T>;
  const StretchWords w = words ? *words : given;
  if (w.apply == 0) {
    return;
  }
  const C lr = static_cast<C>(w.lr), scale = static_cast<C>(w.multiplier);
  const C momentum = static_cast<C>(w.momentum);
  const bool first = w.update == 1;
  dev::for_each_vector<dev::kVectorOf<T>>(span, [&](auto width, int64_t at) {
    constexpr int kWidth = decltype(width)::value;
    C p[kWidth], g[kWidth], b[kWidth] = {};
    load_parameters(a, at, p);
    dev::load_as(a.grad + at, g);
    if (buffer && !first) {
      dev::load_as(buffer + at, b);
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      g[i] *= scale;
      if (o.decay != 0) {
        g[i] += o.decay * p[i];
      }
      if (buffer) {
        b[i] = first ? g[i] : b[i] * momentum + o.undamped * g[i];
        g[i] = o.nesterov ? g[i] + momentum * b[i] : b[i];
      }
      p[i] -= lr * g[i];
    }
    if (buffer) {
      dev::store_from(buffer + at, b);
    }
    store_parameters(a, at, p);
  });
}

template <class C>
struct AdamNumbers {
  C beta2, rest2, eps, coupled_decay;
  double decoupled_decay;
};

template <class C>
struct AdamState {
  C *first, *second, *largest;  // largest: AMSGrad, else null
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    adam_step_kernel(dev::VectorSpan span, Arrays<T> a, AdamState<Compute<T>> state,
                     AdamNumbers<Compute<T>> o, StretchWords given, const StretchWords* words) {
  using C = Compute<T>;
  const StretchWords w = words ? *words : given;
  if (w.apply == 0) {
    return;
  }
  const C scale = static_cast<C>(w.multiplier);
  const C beta1 = static_cast<C>(w.momentum), rest1 = static_cast<C>(1 - w.momentum);
  const C step_size = static_cast<C>(w.lr * w.first_scale);
  const C second_scale = static_cast<C>(w.second_scale);
  const C shrink = static_cast<C>(1 - w.lr * o.decoupled_decay);
  dev::for_each_vector<dev::kVectorOf<T>>(span, [&](auto width, int64_t at) {
    constexpr int kWidth = decltype(width)::value;
    C p[kWidth], g[kWidth], m[kWidth], v[kWidth], top[kWidth];
    load_parameters(a, at, p);
    dev::load_as(a.grad + at, g);
    dev::load_as(state.first + at, m);
    dev::load_as(state.second + at, v);
    if (state.largest) {
      dev::load_as(state.largest + at, top);
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      g[i] *= scale;
      if (o.coupled_decay != 0) {
        g[i] += o.coupled_decay * p[i];
      }
      m[i] = beta1 * m[i] + rest1 * g[i];
      v[i] = o.beta2 * v[i] + o.rest2 * g[i] * g[i];
      top[i] = state.largest && !(v[i] > top[i]) ? top[i] : v[i];
      p[i] = p[i] * shrink - step_size * m[i] / (std::sqrt(top[i]) * second_scale + o.eps);
    }
    dev::store_from(state.first + at, m);
    dev::store_from(state.second + at, v);
    if (state.largest) {
      dev::store_from(state.largest + at, top);
    }
    store_parameters(a, at, p);
  });
}

}  // namespace

void cuda::sgd_step(const SgdStep& a) {
  check_sgd_step(a);
  if (a.param.numel == 0) {
    return;
  }
  dispatch_floating("sgd_step", a.param.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    constexpr int kVector = dev::kVectorOf<T>;
    const Arrays<T> own = dev::arrays<T>(a.param, a.master, a.grad);
    C* buffer = a.momentum_buffer.as<C>();
    const auto span =
        dev::vector_span<kVector>(a.param.numel, own.param, own.master, own.grad, buffer);
    const SgdNumbers<C> numbers{static_cast<C>(1 - a.dampening), static_cast<C>(a.weight_decay),
                                a.nesterov};
    launch({"sgd_step_kernel", grid_blocks(span, kVector, kThreads), kThreads}, sgd_step_kernel<T>,
           span, own, buffer, numbers, words_of(a), a.words.as<StretchWords>());
  });
}

void cuda::adam_step(const AdamStep& a) {
  check_adam_step(a);
  if (a.param.numel == 0) {
    return;
  }
  dispatch_floating("adam_step", a.param.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    constexpr int kVector = dev::kVectorOf<T>;
    const Arrays<T> own = dev::arrays<T>(a.param, a.master, a.grad);
    const AdamState<C> state{a.exp_avg.as<C>(), a.exp_avg_sq.as<C>(), a.max_exp_avg_sq.as<C>()};
    const auto span = dev::vector_span<kVector>(a.param.numel, own.param, own.master, own.grad,
                                                state.first, state.second, state.largest);
    const AdamNumbers<C> numbers{.beta2 = static_cast<C>(a.beta2),
                                 .rest2 = static_cast<C>(1 - a.beta2),
                                 .eps = static_cast<C>(a.eps),
                                 .coupled_decay = static_cast<C>(a.decoupled ? 0 : a.weight_decay),
                                 .decoupled_decay = a.decoupled ? a.weight_decay : 0};
    launch({"adam_step_kernel", grid_blocks(span, kVector, kThreads), kThreads},
           adam_step_kernel<T>, span, own, state, numbers, words_of(a), a.words.as<StretchWords>());
  });
}

}  // namespace binade::kernels
