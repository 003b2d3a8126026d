#include <binade/kernels/optimizer/optimizer_adaptive_isa_internal.h>
#include <binade/kernels/optimizer/optimizer_vector_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class T>
void rmsprop(const RMSpropRange& a) {
  using C = Compute<T>;
  const Parameters<T> parameters(a.range);
  const T* grad = static_cast<const T*>(a.range.grad);
  C* squares = static_cast<C*>(a.square_avg);
  C* means = static_cast<C*>(a.grad_avg);
  C* buffer = static_cast<C*>(a.momentum_buffer);
  const C lr = static_cast<C>(a.lr), eps = static_cast<C>(a.eps);
  const C alpha = static_cast<C>(a.alpha), rest = static_cast<C>(1 - a.alpha);
  const C scale = static_cast<C>(a.grad_scale), decay = static_cast<C>(a.weight_decay);
  const C momentum = static_cast<C>(a.momentum);
  for_vectors<C>(a.range.count, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> p = parameters.template read<part()>(i, n);
    Vector<C> g = load_some<part()>(grad + i, n) * scale;
    if (decay != 0) {
      g += decay * p;
    }
    Vector<C> v = alpha * load_some<part()>(squares + i, n) + rest * g * g;
    store_some<part()>(squares + i, v, n);
    if (means) {
      const Vector<C> mean = alpha * load_some<part()>(means + i, n) + rest * g;
      store_some<part()>(means + i, mean, n);
      v -= mean * mean;
      v = v < Vector<C>{} ? Vector<C>{} : v;  // keeps NaN
    }
    Vector<C> u = g / (sqrt(v) + eps);
    if (buffer) {
      u += momentum * load_some<part()>(buffer + i, n);
      store_some<part()>(buffer + i, u, n);
    }
    parameters.template write<part()>(i, p - lr * u, n);
  });
}

template <class T>
void adagrad(const AdagradRange& a) {
  using C = Compute<T>;
  const Parameters<T> parameters(a.range);
  const T* grad = static_cast<const T*>(a.range.grad);
  C* sum = static_cast<C*>(a.sum);
  const C rate = static_cast<C>(a.rate), eps = static_cast<C>(a.eps);
  const C scale = static_cast<C>(a.grad_scale), decay = static_cast<C>(a.weight_decay);
  for_vectors<C>(a.range.count, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> p = parameters.template read<part()>(i, n);
    Vector<C> g = load_some<part()>(grad + i, n) * scale;
    if (decay != 0) {
      g += decay * p;
    }
    const Vector<C> total = load_some<part()>(sum + i, n) + g * g;
    store_some<part()>(sum + i, total, n);
    parameters.template write<part()>(i, p - rate * g / (sqrt(total) + eps), n);
  });
}

}  // namespace

void rmsprop_range(const RMSpropRange& a) {
  dispatch_floating("rmsprop_step", a.range.dtype, [&]<class T>(Type<T>) { rmsprop<T>(a); });
}

void adagrad_range(const AdagradRange& a) {
  dispatch_floating("adagrad_step", a.range.dtype, [&]<class T>(Type<T>) { adagrad<T>(a); });
}

}  // namespace binade::kernels::BINADE_ISA
