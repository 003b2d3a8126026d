// RMSprop and Adagrad on a device: one pass over memory, a 16-byte vector of parameters per thread
// and turn, as in optimizer.cu.
#include <binade/kernels/optimizer_adaptive_checks.h>
#include <binade/kernels/cuda/step_arrays.cuh>

#include <cmath>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

using dev::Arrays, dev::load_parameters, dev::store_parameters;

template <class C>
struct RmspropState {
  C *squares, *means, *buffer;  // means: centered, else null; buffer: with momentum, else null
};

template <class C>
struct RmspropNumbers {
  C alpha, rest, eps, decay;
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    rmsprop_step_kernel(dev::VectorSpan span, Arrays<T> a, RmspropState<Compute<T>> state,
                        RmspropNumbers<Compute<T>> o, StretchWords given,
                        const StretchWords* words) {
  using C = Compute<T>;
  const StretchWords w = words ? *words : given;
  if (w.apply == 0) {
    return;
  }
  const C lr = static_cast<C>(w.lr), scale = static_cast<C>(w.multiplier);
  const C momentum = static_cast<C>(w.momentum);
  dev::for_each_vector<dev::kVectorOf<T>>(span, [&](auto width, int64_t at) {
    constexpr int kWidth = decltype(width)::value;
    C p[kWidth], g[kWidth], v[kWidth], mean[kWidth] = {}, b[kWidth] = {};
    load_parameters(a, at, p);
    dev::load_as(a.grad + at, g);
    dev::load_as(state.squares + at, v);
    if (state.means) {
      dev::load_as(state.means + at, mean);
    }
    if (state.buffer) {
      dev::load_as(state.buffer + at, b);
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      g[i] *= scale;
      if (o.decay != 0) {
        g[i] += o.decay * p[i];
      }
      v[i] = o.alpha * v[i] + o.rest * g[i] * g[i];
      mean[i] = o.alpha * mean[i] + o.rest * g[i];
    }
    dev::store_from(state.squares + at, v);  // before the divisions, which need registers
    if (state.means) {
      dev::store_from(state.means + at, mean);
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if (state.means) {
        v[i] -= mean[i] * mean[i];
        v[i] = v[i] < C(0) ? C(0) : v[i];  // a NaN stays
      }
      b[i] = momentum * b[i] + g[i] / (std::sqrt(v[i]) + o.eps);  // without a buffer b was 0
      p[i] -= lr * b[i];
    }
    if (state.buffer) {
      dev::store_from(state.buffer + at, b);
    }
    store_parameters(a, at, p);
  });
}

template <class C>
struct AdagradNumbers {
  C eps, decay;
  double lr_decay;
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    adagrad_step_kernel(dev::VectorSpan span, Arrays<T> a, Compute<T>* sum,
                        AdagradNumbers<Compute<T>> o, StretchWords given,
                        const StretchWords* words) {
  using C = Compute<T>;
  const StretchWords w = words ? *words : given;
  if (w.apply == 0) {
    return;
  }
  const C rate = static_cast<C>(adagrad_rate(w, o.lr_decay)), scale = static_cast<C>(w.multiplier);
  dev::for_each_vector<dev::kVectorOf<T>>(span, [&](auto width, int64_t at) {
    constexpr int kWidth = decltype(width)::value;
    C p[kWidth], g[kWidth], total[kWidth];
    load_parameters(a, at, p);
    dev::load_as(a.grad + at, g);
    dev::load_as(sum + at, total);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      g[i] *= scale;
      if (o.decay != 0) {
        g[i] += o.decay * p[i];
      }
      total[i] += g[i] * g[i];
    }
    dev::store_from(sum + at, total);  // before the divisions, which need registers
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      p[i] -= rate * g[i] / (std::sqrt(total[i]) + o.eps);
    }
    store_parameters(a, at, p);
  });
}

}  // namespace

void cuda::rmsprop_step(const RmspropStep& a) {
  check_rmsprop_step(a);
  if (a.param.numel == 0) {
    return;
  }
  dispatch_floating("rmsprop_step", a.param.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    constexpr int kVector = dev::kVectorOf<T>;
    const Arrays<T> own = dev::arrays<T>(a.param, a.master, a.grad);
    const RmspropState<C> state{a.square_avg.as<C>(), a.grad_avg.as<C>(),
                                a.momentum_buffer.as<C>()};
    const auto span = dev::vector_span<kVector>(a.param.numel, own.param, own.master, own.grad,
                                                state.squares, state.means, state.buffer);
    const RmspropNumbers<C> numbers{static_cast<C>(a.alpha), static_cast<C>(1 - a.alpha),
                                    static_cast<C>(a.eps), static_cast<C>(a.weight_decay)};
    launch({"rmsprop_step_kernel", grid_blocks(span, kVector, kThreads), kThreads},
           rmsprop_step_kernel<T>, span, own, state, numbers, words_of(a),
           a.words.as<StretchWords>());
  });
}

void cuda::adagrad_step(const AdagradStep& a) {
  check_adagrad_step(a);
  if (a.param.numel == 0) {
    return;
  }
  dispatch_floating("adagrad_step", a.param.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    constexpr int kVector = dev::kVectorOf<T>;
    const Arrays<T> own = dev::arrays<T>(a.param, a.master, a.grad);
    C* sum = a.sum.as<C>();
    const auto span =
        dev::vector_span<kVector>(a.param.numel, own.param, own.master, own.grad, sum);
    const AdagradNumbers<C> numbers{static_cast<C>(a.eps), static_cast<C>(a.weight_decay),
                                    a.lr_decay};
    launch({"adagrad_step_kernel", grid_blocks(span, kVector, kThreads), kThreads},
           adagrad_step_kernel<T>, span, own, sum, numbers, words_of(a),
           a.words.as<StretchWords>());
  });
}

}  // namespace binade::kernels
