#include <binade/kernels/optimizer/optimizer_trust_isa_internal.h>
#include <binade/kernels/optimizer/optimizer_vector_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// LAMB's direction, computed from its moments.
template <class C>
struct Direction {
  C first_scale, second_scale, eps, decay;

  explicit Direction(const LAMBRange& a)
      : first_scale(static_cast<C>(a.first_scale)),
        second_scale(static_cast<C>(a.second_scale)),
        eps(static_cast<C>(a.eps)),
        decay(static_cast<C>(a.weight_decay)) {}
  BINADE_INLINE Vector<C> operator()(Vector<C> m, Vector<C> v, Vector<C> p) const {
    return first_scale * m / (sqrt(v) * second_scale + eps) + decay * p;
  }
};

template <class T>
void lamb_measure(const LAMBRange& a) {
  using C = Compute<T>;
  const Parameters<T> parameters(a.range);
  const T* grad = static_cast<const T*>(a.range.grad);
  C* first = static_cast<C*>(a.exp_avg);
  C* second = static_cast<C*>(a.exp_avg_sq);
  const C beta1 = static_cast<C>(a.beta1), rest1 = static_cast<C>(1 - a.beta1);
  const C beta2 = static_cast<C>(a.beta2), rest2 = static_cast<C>(1 - a.beta2);
  const C scale = static_cast<C>(a.grad_scale);
  const Direction<C> direction(a);
  Vector<double> p_squares{}, r_squares{};
  for_vectors<C>(a.range.count, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> p = parameters.template read<part()>(i, n);
    const Vector<C> g = load_some<part()>(grad + i, n) * scale;
    const Vector<C> m = beta1 * load_some<part()>(first + i, n) + rest1 * g;
    const Vector<C> v = beta2 * load_some<part()>(second + i, n) + rest2 * g * g;
    store_some<part()>(first + i, m, n);
    store_some<part()>(second + i, v, n);
    add_squares(p_squares, p);
    Vector<C> r = direction(m, v, p);
    for (int64_t k = n; k < kLanes<C>; ++k) {
      r[k] = 0;  // 0 / 0 for an eps of 0
    }
    add_squares(r_squares, r);
  });
  a.sums[0] = reduce_add<double>(p_squares);
  a.sums[1] = reduce_add<double>(r_squares);
}

template <class T>
void lamb_update(const LAMBRange& a) {
  using C = Compute<T>;
  const Parameters<T> parameters(a.range);
  const C* first = static_cast<const C*>(a.exp_avg);
  const C* second = static_cast<const C*>(a.exp_avg_sq);
  const C rate = static_cast<C>(a.rate);
  const Direction<C> direction(a);
  for_vectors<C>(a.range.count, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> p = parameters.template read<part()>(i, n);
    const Vector<C> r =
        direction(load_some<part()>(first + i, n), load_some<part()>(second + i, n), p);
    parameters.template write<part()>(i, p - rate * r, n);
  });
}

template <class T>
void lars_measure(const LARSRange& a) {
  using C = Compute<T>;
  const Parameters<T> parameters(a.range);
  const T* grad = static_cast<const T*>(a.range.grad);
  const C scale = static_cast<C>(a.grad_scale);
  Vector<double> p_squares{}, g_squares{};
  for_vectors<C>(a.range.count, [&](auto part, int64_t i, int64_t n) {
    add_squares(p_squares, parameters.template read<part()>(i, n));
    add_squares(g_squares, load_some<part()>(grad + i, n) * scale);
  });
  a.sums[0] = reduce_add<double>(p_squares);
  a.sums[1] = reduce_add<double>(g_squares);
}

template <class T>
void lars_update(const LARSRange& a) {
  using C = Compute<T>;
  const Parameters<T> parameters(a.range);
  const T* grad = static_cast<const T*>(a.range.grad);
  C* buffer = static_cast<C*>(a.momentum_buffer);
  const C scale = static_cast<C>(a.grad_scale), decay = static_cast<C>(a.weight_decay);
  const C momentum = static_cast<C>(a.momentum), rate = static_cast<C>(a.rate);
  for_vectors<C>(a.range.count, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> p = parameters.template read<part()>(i, n);
    const Vector<C> g = load_some<part()>(grad + i, n) * scale;
    const Vector<C> b = momentum * load_some<part()>(buffer + i, n) + rate * (g + decay * p);
    store_some<part()>(buffer + i, b, n);
    parameters.template write<part()>(i, p - b, n);
  });
}

}  // namespace

void lamb_measure_range(const LAMBRange& a) {
  dispatch_floating("lamb_step", a.range.dtype, [&]<class T>(Type<T>) { lamb_measure<T>(a); });
}

void lamb_update_range(const LAMBRange& a) {
  dispatch_floating("lamb_step", a.range.dtype, [&]<class T>(Type<T>) { lamb_update<T>(a); });
}

void lars_measure_range(const LARSRange& a) {
  dispatch_floating("lars_step", a.range.dtype, [&]<class T>(Type<T>) { lars_measure<T>(a); });
}

void lars_update_range(const LARSRange& a) {
  dispatch_floating("lars_step", a.range.dtype, [&]<class T>(Type<T>) { lars_update<T>(a); });
}

}  // namespace binade::kernels::BINADE_ISA
