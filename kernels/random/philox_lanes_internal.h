// Philox (kernels/base/philox.h) in the lanes of vectors. Include only from *_isa.cpp.
#pragma once
#include <binade/kernels/base/vector_memory_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// Products of the lower halves of the lanes.
BINADE_INLINE Bits<double> multiply_lower(Bits<double> a, Bits<double> b) {
  using Wide = Bits<double>;
#if defined(__AVX512F__)
  return bits_as<Wide>(_mm512_maskz_mul_epu32(0xff, bits_as<__m512i>(a), bits_as<__m512i>(b)));
#elif defined(__AVX2__)
  return bits_as<Wide>(_mm256_mul_epu32(bits_as<__m256i>(a), bits_as<__m256i>(b)));
#else
  return bits_as<Wide>(_mm_mul_epu32(bits_as<__m128i>(a), bits_as<__m128i>(b)));
#endif
}

// Counters become numbers. They are in the lower halves of the lanes: c0 and c1 hold the lower and
// the upper 32 bits of a counter, and all four the numbers of its block in order. The upper halves
// do not matter before, and are not cleared.
template <int kVectors>
BINADE_INLINE void philox_rounds(uint64_t key, Bits<double> (&c0)[kVectors],
                                 Bits<double> (&c1)[kVectors], Bits<double> (&c2)[kVectors],
                                 Bits<double> (&c3)[kVectors]) {
  using Wide = Bits<double>;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int v = 0; v < kVectors; ++v) {
      const Wide p0 = multiply_lower(c0[v], Wide{} + 0xD2511F53u);
      const Wide p1 = multiply_lower(c2[v], Wide{} + 0xCD9E8D57u);
      c0[v] = (p1 >> 32) ^ c1[v] ^ uint64_t(k0);
      c2[v] = (p0 >> 32) ^ c3[v] ^ uint64_t(k1);
      c1[v] = p1;
      c3[v] = p0;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
