// Partial and narrow forms of kernels/gemm/contraction_vector_internal.h, element by element. Part
// of it.
#pragma once
#include <binade/kernels/gemm/contraction_vector_types_internal.h>

#if !defined(__AVX2__)

namespace binade::kernels::BINADE_ISA {
namespace {

template <class T>
[[gnu::noinline]] Vector<T> load_some(const T* p, int n) {
  T buffer[kLanes<T>] = {};
  for (int i = 0; i < n; ++i) {
    buffer[i] = p[i];
  }
  return load(buffer);
}
template <class T>
[[gnu::noinline]] void store_some(T* p, Vector<T> v, int n) {
  T buffer[kLanes<T>];
  store(buffer, v);
  for (int i = 0; i < n; ++i) {
    p[i] = buffer[i];
  }
}
BINADE_INLINE Vector<float> load(const float* p, int n) { return load_some(p, n); }
BINADE_INLINE Vector<double> load(const double* p, int n) { return load_some(p, n); }
BINADE_INLINE void store(float* p, Vector<float> v, int n) { store_some(p, v, n); }
BINADE_INLINE void store(double* p, Vector<double> v, int n) { store_some(p, v, n); }

template <class S>
[[gnu::noinline]] Vector<float> load_narrow(const S* p) {
  return Vector<float>{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]),
                       static_cast<float>(p[3])};
}
template <class S>
[[gnu::noinline]] void store_narrow(S* p, Vector<float> v) {
  for (int i = 0; i < kLanes<float>; ++i) {
    p[i] = S(v[i]);
  }
}

template <class S>
[[gnu::noinline]] Vector<float> load_narrow(const S* p, int n) {
  S buffer[kLanes<float>] = {};
  for (int i = 0; i < n; ++i) {
    buffer[i] = p[i];
  }
  return load_narrow(buffer);
}
template <class S>
[[gnu::noinline]] void store_narrow(S* p, Vector<float> v, int n) {
  S buffer[kLanes<float>];
  store_narrow(buffer, v);
  for (int i = 0; i < n; ++i) {
    p[i] = buffer[i];
  }
}

}  // namespace
}  // namespace binade::kernels::BINADE_ISA

#endif
