// Partial and narrow forms of kernels/gemm/contraction_vector_internal.h for AVX2 and F16C. Part of
// it.
#pragma once
#include <binade/kernels/gemm/contraction_vector_types_internal.h>

#if defined(__AVX2__) && !defined(__AVX512F__)

namespace binade::kernels::BINADE_ISA {
namespace {

// n lanes from the first, as a mask.
alignas(64) constexpr int32_t kLaneMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
BINADE_INLINE __m256i first(int n) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kLaneMasks + 8 - n));
}
BINADE_INLINE Vector<float> load(const float* p, int n) { return _mm256_maskload_ps(p, first(n)); }
BINADE_INLINE Vector<double> load(const double* p, int n) {
  return _mm256_maskload_pd(p, first(2 * n));
}
// Stores in halves: a masked store is slow on some processors.
BINADE_INLINE void store(float* p, Vector<float> v, int n) {
  if (n >= 8) {
    return store(p, v);
  }
  __m128 part = _mm256_castps256_ps128(v);
  if (n & 4) {
    _mm_storeu_ps(p, part);
    part = _mm256_extractf128_ps(v, 1);
    p += 4;
  }
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), part);
    part = _mm_movehl_ps(part, part);
    p += 2;
  }
  if (n & 1) {
    _mm_store_ss(p, part);
  }
}
BINADE_INLINE void store(double* p, Vector<double> v, int n) {
  if (n >= 4) {
    return store(p, v);
  }
  __m128d part = _mm256_castpd256_pd128(v);
  if (n & 2) {
    _mm_storeu_pd(p, part);
    part = _mm256_extractf128_pd(v, 1);
    p += 2;
  }
  if (n & 1) {
    _mm_store_sd(p, part);
  }
}

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

// n elements of 16 bits from memory, zeros after them.
BINADE_INLINE uint64_t load_words(const char* p, int n) {  // n < 4
  uint32_t pair = 0;
  uint16_t one = 0;
  if (n & 2) {
    __builtin_memcpy(&pair, p, 4);
  }
  if (n & 1) {
    __builtin_memcpy(&one, p + 2 * (n & 2), 2);
  }
  return pair | static_cast<uint64_t>(one) << 16 * (n & 2);
}
template <class S>
BINADE_INLINE Vector<float> load_narrow(const S* p, int n) {
  if (n >= 8) {
    return load_narrow(p);
  }
  const char* from = reinterpret_cast<const char*>(p);
  uint64_t low = 0, high = 0;
  if (n >= 4) {
    __builtin_memcpy(&low, from, 8);
    high = load_words(from + 8, n - 4);
  } else {
    low = load_words(from, n);
  }
  return widen(_mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low)), S{});
}
template <class S>
BINADE_INLINE void store_narrow(S* p, Vector<float> v, int n) {
  if (n >= 8) {
    return store_narrow(p, v);
  }
  const __m128i bits = narrow(v, S{});
  char* to = reinterpret_cast<char*>(p);
  auto part = static_cast<uint64_t>(_mm_cvtsi128_si64(bits));
  if (n & 4) {
    __builtin_memcpy(to, &part, 8);
    part = static_cast<uint64_t>(_mm_extract_epi64(bits, 1));
    to += 8;
  }
  if (n & 2) {
    __builtin_memcpy(to, &part, 4);
    part >>= 32;
    to += 4;
  }
  if (n & 1) {
    __builtin_memcpy(to, &part, 2);
  }
}

}  // namespace
}  // namespace binade::kernels::BINADE_ISA

#endif
