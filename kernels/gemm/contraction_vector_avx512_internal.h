// Partial and narrow forms of kernels/gemm/contraction_vector_internal.h for AVX-512, by masks.
// Part of it.
#pragma once
#include <binade/kernels/gemm/contraction_vector_types_internal.h>

#if defined(__AVX512F__)

namespace binade::kernels::BINADE_ISA {
namespace {

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
// The high halves of bits that half a unit and, for ties, the last bit were added to.
alignas(64) constexpr uint16_t kHighHalves[32] = {1,  3,  5,  7,  9,  11, 13, 15,
                                                  17, 19, 21, 23, 25, 27, 29, 31};
BINADE_INLINE __m256i narrow_by_bits(Vector<float> v) {
  const __m512i bits = (__m512i)v, one = _mm512_set1_epi32(1);
  const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  __m512i up = (__m512i)((Bits)bits + 0x7fff);
  up = _mm512_mask_add_epi32(up, odd, up, one);
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  up = _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000));
  const __m512i halves = _mm512_load_si512(kHighHalves);
  const __m512i low = _mm512_maskz_permutexvar_epi16(~0u, halves, up);
  return (__m256i)__builtin_shufflevector(low, low, 0, 1, 2, 3);
}
BINADE_INLINE __m256i narrow(Vector<float> v, bfloat16) {
#if defined(__AVX512BF16__)
  constexpr int kSubnormal = 0x20;  // the instruction treats them as 0
  if (!_mm512_fpclass_ps_mask(v, kSubnormal)) {
    return (__m256i)_mm512_cvtneps_pbh(v);
  }
#endif
  return narrow_by_bits(v);
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

}  // namespace
}  // namespace binade::kernels::BINADE_ISA

#endif
