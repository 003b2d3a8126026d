// Vectors of one instruction set for the contraction kernels: loads that widen f16 and bf16 to
// float, stores that round once, partial forms that touch only n elements, and a register
// transpose. Included by *_isa.cpp files only (kernels/base/isa.h has their rules).
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

#if defined(__AVX512F__)

BINADE_INLINE __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
// Vector arithmetic and zero-masked forms: the plain intrinsics trip g++ 12's warnings.
typedef uint32_t Bits __attribute__((vector_size(kVectorBytes)));
BINADE_INLINE Vector<float> widen(__m256i bits, half) {
  return _mm512_maskz_cvtph_ps(0xffff, bits);
}
BINADE_INLINE Vector<float> widen(__m256i bits, bfloat16) {
  return (Vector<float>)((Bits)_mm512_maskz_cvtepu16_epi32(0xffff, bits) << 16);
}
BINADE_INLINE __m256i narrow(Vector<float> v, half) {
  return _mm512_maskz_cvtps_ph(0xffff, v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
BINADE_INLINE __m256i narrow(Vector<float> v, bfloat16) {
  const Bits bits = (Bits)v, high = bits >> 16;
  const Bits rounded = (bits + 0x7fff + (high & 1)) >> 16;
  const Bits result = v == v ? rounded : high | 0x40;
  return _mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)result);
}
template <class S>
BINADE_INLINE Vector<float> load_narrow(const S* p) {
  return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), S{});
}
template <class S>
BINADE_INLINE Vector<float> load_narrow(const S* p, int n) {
  return widen(_mm256_maskz_loadu_epi16(first(n), p), S{});
}
template <class S>
BINADE_INLINE void store_narrow(S* p, Vector<float> v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(v, S{}));
}
template <class S>
BINADE_INLINE void store_narrow(S* p, Vector<float> v, int n) {
  _mm256_mask_storeu_epi16(p, first(n), narrow(v, S{}));
}
BINADE_INLINE Vector<float> load(const float* p, int n) {
  return _mm512_maskz_loadu_ps(first(n), p);
}
BINADE_INLINE Vector<double> load(const double* p, int n) {
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>(first(n)), p);
}
BINADE_INLINE void store(float* p, Vector<float> v, int n) {
  _mm512_mask_storeu_ps(p, first(n), v);
}
BINADE_INLINE void store(double* p, Vector<double> v, int n) {
  _mm512_mask_storeu_pd(p, static_cast<__mmask8>(first(n)), v);
}

#else

template <class T>
BINADE_INLINE Vector<T> load_some(const T* p, int n) {
  T buffer[kLanes<T>] = {};
  for (int i = 0; i < n; ++i) {
    buffer[i] = p[i];
  }
  return load(buffer);
}
template <class T>
BINADE_INLINE void store_some(T* p, Vector<T> v, int n) {
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

#if defined(__AVX2__)

BINADE_INLINE Vector<float> widen(__m128i bits, half) { return _mm256_cvtph_ps(bits); }
BINADE_INLINE Vector<float> widen(__m128i bits, bfloat16) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
BINADE_INLINE __m128i narrow(Vector<float> v, half) {
  return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
BINADE_INLINE __m128i narrow(Vector<float> v, bfloat16) {
  const __m256i bits = _mm256_castps_si256(v), high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const __m256i wide = _mm256_blendv_epi8(rounded, quiet, nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
}
template <class S>
BINADE_INLINE Vector<float> load_narrow(const S* p) {
  return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), S{});
}
template <class S>
BINADE_INLINE void store_narrow(S* p, Vector<float> v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow(v, S{}));
}

#else

template <class S>
BINADE_INLINE Vector<float> load_narrow(const S* p) {
  return Vector<float>{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]),
                       static_cast<float>(p[3])};
}
template <class S>
BINADE_INLINE void store_narrow(S* p, Vector<float> v) {
  for (int i = 0; i < kLanes<float>; ++i) {
    p[i] = S(v[i]);
  }
}

#endif

template <class S>
BINADE_INLINE Vector<float> load_narrow(const S* p, int n) {
  S buffer[kLanes<float>] = {};
  for (int i = 0; i < n; ++i) {
    buffer[i] = p[i];
  }
  return load_narrow(buffer);
}
template <class S>
BINADE_INLINE void store_narrow(S* p, Vector<float> v, int n) {
  S buffer[kLanes<float>];
  store_narrow(buffer, v);
  for (int i = 0; i < n; ++i) {
    p[i] = buffer[i];
  }
}

#endif

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

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
