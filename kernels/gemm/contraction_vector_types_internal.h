// One vector register of an instruction set: type, width, whole loads and stores of f32 and f64.
// Part of kernels/gemm/contraction_vector_internal.h.
#pragma once
#include <binade/kernels/base/half.h>

#include <cstdint>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace binade::kernels::BINADE_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
  typedef T unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
};
template <class T>
using Vector = typename VectorOf<T>::type;

#define BINADE_INLINE [[gnu::always_inline]] inline

BINADE_INLINE Vector<float> load(const float* p) {
  return *reinterpret_cast<const VectorOf<float>::unaligned*>(p);
}
BINADE_INLINE Vector<double> load(const double* p) {
  return *reinterpret_cast<const VectorOf<double>::unaligned*>(p);
}
BINADE_INLINE void store(float* p, Vector<float> v) {
  *reinterpret_cast<VectorOf<float>::unaligned*>(p) = v;
}
BINADE_INLINE void store(double* p, Vector<double> v) {
  *reinterpret_cast<VectorOf<double>::unaligned*>(p) = v;
}

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
