// Computes the keys of a block of elements as vectors, then increments one counter per key.
#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/exponents/exponent_keys.h>
#include <binade/kernels/exponents/exponents_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

constexpr int64_t kBlock = 2048;

void increment(const uint16_t* keys, int64_t count, ExponentTable* tables) {
  int64_t i = 0;
  for (; i + kExponentTables <= count; i += kExponentTables) {
    for (int j = 0; j < kExponentTables; ++j) {
      ++tables[j][keys[i + j]];
    }
  }
  for (; i < count; ++i) {
    ++tables[0][keys[i]];
  }
}

// Writes the keys (AVX-512 leaves out keys that are 0) and returns the end of the written part.
template <class T>
uint16_t* store_keys(Bits<float> bits, int64_t n, uint16_t* keys) {
#if defined(__AVX512F__)
  const __m512i fraction = bits_as<__m512i>(bits & 0x7fffffu), one = _mm512_set1_epi32(1);
  __m512i key = bits_as<__m512i>(bits >> 20 & 0x7f8u);
  key = _mm512_mask_add_epi32(key, _mm512_test_epi32_mask(fraction, fraction), key, one);
  if constexpr (dtype_of<T> != DType::bf16) {
    const __m512i low = _mm512_set1_epi32(0xffff), near = _mm512_set1_epi32(kNearSubnormalUnit);
    key = _mm512_mask_add_epi32(key, _mm512_test_epi32_mask(fraction, low), key, one);
    key = _mm512_mask_add_epi32(key, _mm512_cmpge_epi32_mask(fraction, near), key, one);
  }
  if constexpr (dtype_of<T> == DType::f32) {  // f16 has no such digits
    const __m512i near = _mm512_set1_epi32(kNearHalfUnit);
    key = _mm512_mask_add_epi32(key, _mm512_cmpge_epi32_mask(fraction, near), key, one);
  }
  const __mmask16 kept = _mm512_test_epi32_mask(bits_as<__m512i>(bits), bits_as<__m512i>(bits));
  key = _mm512_maskz_compress_epi32(kept, key);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(keys), _mm512_maskz_cvtepi32_epi16(0xffff, key));
  (void)n;
  return keys + __builtin_popcount(kept);
#else
  const auto fraction = bits_as<Mask<float>>(bits & 0x7fffffu);
  // True is -1.
  const Mask<float> kind = (fraction > 0) + ((fraction & 0xffff) > 0) +
                           (fraction > int(kNearSubnormalUnit) - 1) +
                           (fraction > int(kNearHalfUnit) - 1);
  const Bits<float> key = (bits >> 20 & 0x7f8u) - bits_as<Bits<float>>(kind);
  const HalfBits narrow = __builtin_convertvector(key, HalfBits);
  __builtin_memcpy(keys, &narrow, sizeof narrow);
  return keys + n;
#endif
}

// Returns the number of keys written; the others are 0. Magnitudes are compared as signed numbers,
// for which every instruction set has one instruction.
template <class T>
int64_t keys_of(const T* x, int64_t count, uint16_t* keys, ExponentRange& a) {
  uint16_t* end = keys;
  constexpr int kInfinity = kInfinityBits;
  Mask<float> largest{};
  Bits<float> least = ~Bits<float>{};  // magnitude - 1, unsigned: for 0 it is the largest value
  for_vectors<float>(count, [&](auto part, int64_t i, int64_t n) {
    const Bits<float> bits = bits_as<Bits<float>>(load_some<part()>(x + i, n)) & 0x7fffffffu;
    end = store_keys<T>(bits, n, end);
    const auto magnitude = bits_as<Mask<float>>(bits);
#if defined(__AVX512F__)
    const auto most = bits_as<__m512i>(largest), now = bits_as<__m512i>(magnitude);
    const __mmask16 finite = _mm512_cmplt_epi32_mask(now, _mm512_set1_epi32(kInfinity));
    largest = bits_as<Mask<float>>(_mm512_mask_max_epi32(most, finite, most, now));
#else
    const Mask<float> finite = magnitude & (magnitude < kInfinity);
    largest = finite > largest ? finite : largest;
#endif
    const Bits<float> before = bits - 1;
    least = before < least ? before : least;
  });
  for (int lane = 0; lane < kLanes<float>; ++lane) {
    const auto most = static_cast<uint32_t>(largest[lane]);
    a.largest = most > a.largest ? most : a.largest;
    const uint32_t smallest = least[lane] < kLargestBits ? ~(least[lane] + 1) : 0;
    a.smallest = smallest > a.smallest ? smallest : a.smallest;
  }
  return end - keys;
}

int64_t keys_of(const double* x, int64_t count, uint16_t* keys, ExponentRange& a) {
  for (int64_t i = 0; i < count; ++i) {
    keys[i] = static_cast<uint16_t>(exponent_key(x[i]));
    const uint32_t bits = magnitude_bits(x[i]);
    if (bits < kInfinityBits && bits != 0) {
      a.largest = bits > a.largest ? bits : a.largest;
      a.smallest = ~bits > a.smallest ? ~bits : a.smallest;
    }
  }
  return count;
}

// update_is_lost() for a vector of weights, given the bits of their magnitude as f32, their
// magnitude, whether the update shrinks them, and the magnitude of the update.
template <class T>
Mask<double> are_lost(Bits<double> bits, Vector<double> size, Mask<double> shrinks,
                      Vector<double> distance) {
  constexpr bool kHalf = std::is_same_v<T, half>;
  constexpr int kDigits = kHalf ? 11 : 8, kLeast = kHalf ? -14 : -126, kDropped = 24 - kDigits;
  constexpr int64_t kTooLarge = kHalf ? 0x47800000 : kInfinityBits;
  Bits<double> rounded = bits + ((1u << (kDropped - 1)) - 1) + (bits >> kDropped & 1);
  rounded &= ~((uint64_t(1) << kDropped) - 1);
  Mask<double> even = (bits_as<Mask<double>>(rounded >> kDropped) & 1) == 0;
  if constexpr (kHalf) {  // the last digit of size + 2^28 is 2^-24
    const Mask<double> moved = bits_as<Mask<double>>(size + 0x1p28);
    const Mask<double> subnormal = size < 0x1p-14;
    even = (subnormal & ((moved & 1) == 0)) | (~subnormal & even);
  }
  Mask<double> exponent = bits_as<Mask<double>>(rounded >> 23) - 127;
  const Mask<double> low = exponent < kLeast;
  exponent = (low & int64_t{kLeast}) | (~low & exponent);
  const Mask<double> finer_below =
      shrinks & ((bits_as<Mask<double>>(rounded) & 0x7fffff) == 0) & (exponent > kLeast);
  const Mask<double> fits = bits_as<Mask<double>>(rounded) < kTooLarge;
  const auto half_unit = bits_as<Vector<double>>(
      fits & ((exponent + finer_below + (1023 - kDigits)) << 52));  // true is -1
  return (distance < half_unit) | ((distance == half_unit) & even & fits);
}

}  // namespace

void count_exponents_range(ExponentRange& a) {
  uint16_t keys[kBlock + kLanes<float>];
  dispatch_floating("count_exponents", a.dtype, [&]<class T>(Type<T>) {
    const T* x = static_cast<const T*>(a.x);
    for (int64_t first = 0; first < a.count; first += kBlock) {
      const int64_t count = a.count - first < kBlock ? a.count - first : kBlock;
      const int64_t written = keys_of(x + first, count, keys, a);
      increment(keys, written, a.tables);
      a.tables[0][0] += static_cast<uint32_t>(count - written);
    }
  });
}

void count_lost_updates_range(LostUpdates& a) {
  constexpr int kCount = kLanes<double>;
  typedef float Floats __attribute__((vector_size(kCount * sizeof(float))));
  typedef uint32_t Words __attribute__((vector_size(kCount * sizeof(float))));
  Mask<double> differing{}, half_lost{}, bfloat16_lost{};
  int64_t i = 0;
  for (; i + kCount <= a.count; i += kCount) {
    Floats before, after;
    __builtin_memcpy(&before, a.before + i, sizeof before);
    __builtin_memcpy(&after, a.after + i, sizeof after);
    const auto w = __builtin_convertvector(before, Vector<double>);
    const Vector<double> update = __builtin_convertvector(after, Vector<double>) - w;
    const Vector<double> size = w < 0 ? -w : w, distance = update < 0 ? -update : update;
    const auto bits = __builtin_convertvector(bits_as<Words>(before) & 0x7fffffffu, Bits<double>);
    const Mask<double> differs = update != 0;  // NaN counts as a change that is not lost
    const Mask<double> shrinks = ~((w < 0) ^ (update > 0));
    differing += differs;
    half_lost += differs & are_lost<half>(bits, size, shrinks, distance);
    bfloat16_lost += differs & are_lost<bfloat16>(bits, size, shrinks, distance);
  }
  int64_t changed = 0, in_half = 0, in_bfloat16 = 0;
  for (int lane = 0; lane < kCount; ++lane) {
    changed -= differing[lane];
    in_half -= half_lost[lane];
    in_bfloat16 -= bfloat16_lost[lane];
  }
  for (; i < a.count; ++i) {
    const double update = static_cast<double>(a.after[i]) - static_cast<double>(a.before[i]);
    const bool differs = update != 0;
    changed += differs;
    in_half += differs & update_is_lost<half>(a.before[i], update);
    in_bfloat16 += differs & update_is_lost<bfloat16>(a.before[i], update);
  }
  a.changed = changed;
  a.in_half = in_half;
  a.in_bfloat16 = in_bfloat16;
}

}  // namespace binade::kernels::BINADE_ISA
