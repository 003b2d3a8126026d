#include <binade/kernels/optimizer/optimizer_vector_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class T>
void sgd(const SGDRange& a) {
  using C = Compute<T>;
  const Parameters<T> parameters(a.range);
  const T* grad = static_cast<const T*>(a.range.grad);
  C* buffer = static_cast<C*>(a.momentum_buffer);
  const C lr = static_cast<C>(a.lr), momentum = static_cast<C>(a.momentum);
  const C scale = static_cast<C>(a.grad_scale), decay = static_cast<C>(a.weight_decay);
  const C undamped = static_cast<C>(1 - a.dampening);
  for_vectors<C>(a.range.count, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> p = parameters.template read<part()>(i, n);
    Vector<C> g = load_some<part()>(grad + i, n) * scale;
    if (decay != 0) {
      g += decay * p;
    }
    if (buffer) {
      const Vector<C> b =
          a.first_step ? g : load_some<part()>(buffer + i, n) * momentum + undamped * g;
      store_some<part()>(buffer + i, b, n);
      g = a.nesterov ? g + momentum * b : b;
    }
    parameters.template write<part()>(i, p - lr * g, n);
  });
}

template <class T>
void adam(const AdamRange& a) {
  using C = Compute<T>;
  const Parameters<T> parameters(a.range);
  const T* grad = static_cast<const T*>(a.range.grad);
  C* first = static_cast<C*>(a.exp_avg);
  C* second = static_cast<C*>(a.exp_avg_sq);
  C* largest = static_cast<C*>(a.max_exp_avg_sq);
  const C beta1 = static_cast<C>(a.beta1), rest1 = static_cast<C>(1 - a.beta1);
  const C beta2 = static_cast<C>(a.beta2), rest2 = static_cast<C>(1 - a.beta2);
  const C eps = static_cast<C>(a.eps), step_size = static_cast<C>(a.step_size);
  const C second_scale = static_cast<C>(a.second_scale), scale = static_cast<C>(a.grad_scale);
  const C decay = static_cast<C>(a.coupled_decay), shrink = static_cast<C>(a.shrink);
  for_vectors<C>(a.range.count, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> p = parameters.template read<part()>(i, n);
    Vector<C> g = load_some<part()>(grad + i, n) * scale;
    if (decay != 0) {
      g += decay * p;
    }
    const Vector<C> m = beta1 * load_some<part()>(first + i, n) + rest1 * g;
    Vector<C> v = beta2 * load_some<part()>(second + i, n) + rest2 * g * g;
    store_some<part()>(first + i, m, n);
    store_some<part()>(second + i, v, n);
    if (largest) {
      v = max<C>(v, load_some<part()>(largest + i, n));
      store_some<part()>(largest + i, v, n);
    }
    const Vector<C> step = step_size * m / (sqrt(v) * second_scale + eps);
    parameters.template write<part()>(i, p * shrink - step, n);
  });
}

template <class T>
void stats(const GradientStatsRange& a) {
  using C = Compute<T>;
  const T* grad = static_cast<const T*>(a.grad);
  Vector<double> sums{};
  Mask<C> finite_lanes{};
  int64_t lanes = 0;
  for_vectors<C>(a.count, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> g = load_some<part()>(grad + i, n);
    const Mask<C> finite = g - g == Vector<C>{};  // inf - inf and NaN - NaN are NaN
    finite_lanes -= finite;
    lanes += kLanes<C>;
    add_squares(sums, finite ? g : Vector<C>{});
  });
  int64_t finite = 0;
  for (int i = 0; i < kLanes<C>; ++i) {
    finite += finite_lanes[i];
  }
  a.result[0] = reduce_add<double>(sums);
  a.result[1] = static_cast<double>(lanes - finite);
}

}  // namespace

void sgd_range(const SGDRange& a) {
  dispatch_floating("sgd_step", a.range.dtype, [&]<class T>(Type<T>) { sgd<T>(a); });
}

void adam_range(const AdamRange& a) {
  dispatch_floating("adam_step", a.range.dtype, [&]<class T>(Type<T>) { adam<T>(a); });
}

void gradient_stats_range(const GradientStatsRange& a) {
  dispatch_floating("gradient_stats", a.dtype, [&]<class T>(Type<T>) { stats<T>(a); });
}

}  // namespace binade::kernels::BINADE_ISA
