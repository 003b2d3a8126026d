// The key of a number: its exponent, and the class that decides how it rounds to f16 and bf16.
//
// key = 8 * (biased f32 exponent) + class, where f is the fraction of the significand:
//   0  f = 0: a power of two
//   1  bf16 holds the number
//   2  bf16 does not
//   3  f >= 1023.5/512 - 1: within half a unit of the next power of two in the 10 bits that f16
//      subnormals just below 2^-14 have
//   4  f >= 65520/32768 - 1: the same in the 11 bits of f16
// Classes 3 and 4 do not fit bf16 either. From a histogram over keys follows the exact number of
// elements that overflow, are subnormal, or are flushed to 0 in f16 after scaling by any power of
// two (core/observe/exponents.h). Exponent 0 holds 0 (class 0) and magnitudes below 2^-126;
// exponent 255 holds inf (class 0) and NaN. f64 values too large for f32 count as class 4 of
// exponent 254.
#pragma once
#include <binade/kernels/base/half.h>
#include <binade/kernels/base/host_device.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace binade::kernels {

inline constexpr uint32_t kNearSubnormalUnit = 0x7fe000, kNearHalfUnit = 0x7ff000;
inline constexpr uint32_t kInfinityBits = 0x7f800000, kLargestBits = 0x7f7fffff;

namespace {  // each instruction set compiles its own copy (kernels/base/isa.h)

BINADE_HD inline uint32_t magnitude_bits(float x) {
  return std::bit_cast<uint32_t>(x) & 0x7fffffffu;
}
// Rounds to f32, but finite stays finite and nonzero stays nonzero.
BINADE_HD inline uint32_t magnitude_bits(double x) {
  const uint32_t bits = magnitude_bits(static_cast<float>(x));
  const bool finite = x - x == 0;
  return finite && bits >= kInfinityBits ? kLargestBits : bits == 0 && x != 0 ? 1 : bits;
}

BINADE_HD inline uint32_t exponent_key(float x) {
  const uint32_t bits = magnitude_bits(x), fraction = bits & 0x7fffffu;
  const uint32_t kind = static_cast<uint32_t>(fraction != 0) + ((fraction & 0xffffu) != 0) +
                        (fraction >= kNearSubnormalUnit) + (fraction >= kNearHalfUnit);
  return (bits >> 20 & 0x7f8u) + kind;
}

BINADE_HD inline uint32_t exponent_key(double x) {
  constexpr uint64_t kFraction = (uint64_t(1) << 52) - 1;
  const uint64_t bits = std::bit_cast<uint64_t>(x) & ~(uint64_t(1) << 63);
  const uint64_t fraction = bits & kFraction;
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  if (bits == 0) {
    return 0;
  }
  if (exponent == 1024) {
    return 8 * 255 + (fraction != 0);
  }
  if (exponent > 127) {
    return 8 * 254 + 4;
  }
  if (exponent < -126) {  // the unit of bf16 is 2^-133 here
    const int below_unit = -81 - exponent;
    const uint64_t significand = fraction | (kFraction + 1);
    const bool fits = below_unit <= 52 && (significand & ((uint64_t(1) << below_unit) - 1)) == 0;
    return fits ? 1 : 2;
  }
  const uint32_t kind = static_cast<uint32_t>(fraction != 0) +
                        ((fraction & ((uint64_t(1) << 45) - 1)) != 0) +
                        (fraction >= uint64_t(kNearSubnormalUnit) << 29) +
                        (fraction >= uint64_t(kNearHalfUnit) << 29);
  return 8 * static_cast<uint32_t>(exponent + 127) + kind;
}

// True if T(w) + update rounds to T(w) again, ties to even. It forms no sum: it compares the update
// with half the distance from T(w) to its neighbour. False if T(w) is not finite. Branch-free,
// because the branches would be unpredictable.
template <class T>
BINADE_HD inline bool update_is_lost(float w, double update) {
  constexpr bool kHalf = std::is_same_v<T, half>;
  constexpr int kDigits = kHalf ? 11 : 8, kLeast = kHalf ? -14 : -126, kDropped = 24 - kDigits;
  constexpr uint32_t kTooLarge = kHalf ? 0x47800000 : kInfinityBits;  // 2^16: inf in f16
  const uint32_t size = magnitude_bits(w);
  // |T(w)| as f32 bits, and whether its last digit is even.
  uint32_t rounded = size + (1u << (kDropped - 1)) - 1 + (size >> kDropped & 1);
  rounded &= ~((1u << kDropped) - 1);
  bool even = (rounded >> kDropped & 1) == 0;
  if constexpr (kHalf) {  // subnormals are multiples of 2^-24, the last digit of numbers near 0.5
    const bool subnormal = size < 0x38800000;
    const float moved = std::bit_cast<float>(size) + 0.5f;
    rounded = subnormal ? std::bit_cast<uint32_t>(moved - 0.5f) : rounded;
    even = subnormal ? (std::bit_cast<uint32_t>(moved) & 1) == 0 : even;
  }
  int exponent = static_cast<int>(rounded >> 23) - 127;
  exponent = exponent < kLeast ? kLeast : exponent;
  const bool shrinks = (w < 0) == (update > 0);
  const bool finer_below = shrinks & ((rounded & 0x7fffffu) == 0) & (exponent > kLeast);
  // For a T(w) that is not finite the exponent bits become 0, so half_unit is 0.
  const int power = rounded < kTooLarge ? exponent - kDigits - finer_below : -1023;
  const auto half_unit = std::bit_cast<double>(static_cast<uint64_t>(1023 + power) << 52);
  const double distance = update < 0 ? -update : update;
  return (distance < half_unit) | ((distance == half_unit) & even & (power != -1023));
}

}  // namespace
}  // namespace binade::kernels
