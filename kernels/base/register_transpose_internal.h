// Transposes a square of elements that lies in as many registers as a register has lanes. Include
// only from *_isa.cpp files (rules: kernels/base/isa.h).
#pragma once
#include <binade/kernels/base/isa.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace binade::kernels::BINADE_ISA {
namespace {

#define BINADE_INLINE [[gnu::always_inline]] inline

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

#if defined(__AVX2__)
// 8 x 8 floats with half the shuffles of the general form: first inside 128-bit lanes, then across.
BINADE_INLINE void transpose_floats(__m256 (&r)[8]) {
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

// r[i][j] <-> r[j][i]: log2(lanes) rounds of interleaving rows i and i + lanes / 2.
template <class V, int kCount>
BINADE_INLINE void transpose_registers(V (&r)[kCount]) {
#if defined(__AVX2__)
  if constexpr (kCount == 8 && sizeof(V) == 32) {
    __m256 floats[8];
    __builtin_memcpy(floats, r, sizeof floats);
    transpose_floats(floats);
    __builtin_memcpy(r, floats, sizeof floats);
    return;
  }
#endif
  using All = typename IndicesOf<kCount>::type;
  for (int round = 1; round < kCount; round *= 2) {
    V t[kCount];
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
