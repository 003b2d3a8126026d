#include <binade/kernels/optimizer/optimizer_moment_isa_internal.h>
#include <binade/kernels/optimizer/optimizer_vector_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class T>
void moment(const MomentRange& a) {
  using C = Compute<T>;
  const Parameters<T> parameters(a.range);
  const T* grad = static_cast<const T*>(a.range.grad);
  C* first = static_cast<C*>(a.exp_avg);
  C* second = static_cast<C*>(a.exp_avg_sq);
  const C beta1 = static_cast<C>(a.beta1), rest1 = static_cast<C>(1 - a.beta1);
  const C beta2 = static_cast<C>(a.beta2), rest2 = static_cast<C>(1 - a.beta2);
  const C eps = static_cast<C>(a.eps), root = static_cast<C>(a.root);
  const C gradient = static_cast<C>(a.gradient), average = static_cast<C>(a.average);
  const C decay = static_cast<C>(a.coupled_decay), shrink = static_cast<C>(a.shrink);
  const C scale = static_cast<C>(a.grad_scale);
  for_vectors<C>(a.range.count, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> p = parameters.template read<part()>(i, n);
    Vector<C> g = load_some<part()>(grad + i, n) * scale;
    if (decay != 0) {
      g += decay * p;
    }
    const Vector<C> m = beta1 * load_some<part()>(first + i, n) + rest1 * g;
    const Vector<C> v = beta2 * load_some<part()>(second + i, n) + rest2 * g * g;
    store_some<part()>(first + i, m, n);
    store_some<part()>(second + i, v, n);
    Vector<C> step = gradient * g + average * m;
    if (a.adaptive) {
      step /= sqrt(v) * root + eps;
    }
    parameters.template write<part()>(i, p * shrink - step, n);
  });
}

}  // namespace

void moment_range(const MomentRange& a) {
  dispatch_floating("moment_step", a.range.dtype, [&]<class T>(Type<T>) { moment<T>(a); });
}

}  // namespace binade::kernels::BINADE_ISA
