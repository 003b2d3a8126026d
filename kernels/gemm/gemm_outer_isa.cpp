#include <binade/kernels/gemm/contraction_vector_internal.h>
#include <binade/kernels/gemm/gemm_outer_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// Adds as a tile does: the product to 0, then the old value.
template <bool kAccumulate, class T>
BINADE_INLINE Vector<T> result(T factor, Vector<T> b, Vector<T> old) {
  const Vector<T> sum = Vector<T>{} + factor * b;
  return kAccumulate ? sum + old : sum;
}

template <bool kAccumulate, class T>
void rows(const OuterProduct& p) {
  constexpr int64_t kCount = kLanes<T>;
  const T *a = static_cast<const T*>(p.a), *b = static_cast<const T*>(p.b);
  T* y = static_cast<T*>(p.y);
  const int left = static_cast<int>(p.n % kCount);
  for (int64_t i = 0; i < p.m; ++i, a += p.a_stride, y += p.y_row) {
    int64_t j = 0;
    for (; j + kCount <= p.n; j += kCount) {
      store(y + j, result<kAccumulate>(*a, load(b + j), kAccumulate ? load(y + j) : Vector<T>{}));
    }
    if (left) {
      const Vector<T> old = kAccumulate ? load(y + j, left) : Vector<T>{};
      store(y + j, result<kAccumulate>(*a, load(b + j, left), old), left);
    }
  }
}

template <class T>
void outer(const OuterProduct& p) {
  p.accumulate ? rows<true, T>(p) : rows<false, T>(p);
}

}  // namespace

void gemm_outer(const OuterProduct& p) {
  p.dtype == DType::f64 ? outer<double>(p) : outer<float>(p);
}

}  // namespace binade::kernels::BINADE_ISA
