// Vectors of one instruction set for the contraction kernels: loads that widen f16 and bf16 to
// float, stores that round once, partial forms that touch only n elements, and a register
// transpose. Only *_isa.cpp files may include it (rules: kernels/base/isa.h). Of the three headers
// below only the one for the instruction set in use has content.
#pragma once
#include <binade/kernels/gemm/contraction_vector_avx2_internal.h>
#include <binade/kernels/gemm/contraction_vector_avx512_internal.h>
#include <binade/kernels/gemm/contraction_vector_baseline_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

BINADE_INLINE Vector<float> load(const half* p) { return load_narrow(p); }
BINADE_INLINE Vector<float> load(const bfloat16* p) { return load_narrow(p); }
BINADE_INLINE Vector<float> load(const half* p, int n) { return load_narrow(p, n); }
BINADE_INLINE Vector<float> load(const bfloat16* p, int n) { return load_narrow(p, n); }
BINADE_INLINE void store(half* p, Vector<float> v) { store_narrow(p, v); }
BINADE_INLINE void store(bfloat16* p, Vector<float> v) { store_narrow(p, v); }
BINADE_INLINE void store(half* p, Vector<float> v, int n) { store_narrow(p, v, n); }
BINADE_INLINE void store(bfloat16* p, Vector<float> v, int n) { store_narrow(p, v, n); }

template <int... kIndex>
struct Indices {};
template <int kCount>
struct IndicesOf;
template <>
struct IndicesOf<2> {
  using type = Indices<0, 1>;
};
template <>
struct IndicesOf<4> {
  using type = Indices<0, 1, 2, 3>;
};
template <>
struct IndicesOf<8> {
  using type = Indices<0, 1, 2, 3, 4, 5, 6, 7>;
};
template <>
struct IndicesOf<16> {
  using type = Indices<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>;
};

// Interleaves the halves that start at kStart: a0 b0 a1 b1 ...
template <int kStart, int kCount, class V, int... kIndex>
BINADE_INLINE V interleave(V a, V b, Indices<kIndex...>) {
  return __builtin_shufflevector(a, b, (kStart + kIndex / 2 + kIndex % 2 * kCount)...);
}

// r[i][j] <-> r[j][i]: log2(lanes) rounds of interleaving rows i and i + lanes / 2.
template <class T>
BINADE_INLINE void transpose(Vector<T> (&r)[kLanes<T>]) {
  constexpr int kCount = kLanes<T>;
  using All = typename IndicesOf<kCount>::type;
  for (int round = 1; round < kCount; round *= 2) {
    Vector<T> t[kCount];
    for (int i = 0; i < kCount / 2; ++i) {
      t[2 * i] = interleave<0, kCount>(r[i], r[i + kCount / 2], All{});
      t[2 * i + 1] = interleave<kCount / 2, kCount>(r[i], r[i + kCount / 2], All{});
    }
    for (int i = 0; i < kCount; ++i) {
      r[i] = t[i];
    }
  }
}

#if defined(__AVX2__) && !defined(__AVX512F__)

// The same with half the shuffles: first inside 128-bit lanes, then across lanes.
template <>
BINADE_INLINE void transpose<float>(Vector<float> (&r)[8]) {
  __m256 pairs[8], fours[8];
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    pairs[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      const __m256 a = pairs[4 * i + j], b = pairs[4 * i + 2 + j];
      fours[4 * i + 2 * j] = _mm256_shuffle_ps(a, b, _MM_SHUFFLE(1, 0, 1, 0));
      fours[4 * i + 2 * j + 1] = _mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 2, 3, 2));
    }
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(fours[i], fours[4 + i], 0x20);
    r[4 + i] = _mm256_permute2f128_ps(fours[i], fours[4 + i], 0x31);
  }
}

#endif

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
