// half (IEEE 754 binary16) and bfloat16 as storage types. There is no arithmetic on them: convert
// to float, compute, convert back once. Conversions round to nearest even, keep subnormals, and are
// bit-exact on every machine. A NaN becomes a quiet NaN with the same sign and the top bits of its
// payload. Bulk conversions are kernels (kernels/copy/copy.h).
// In device code a conversion is the GPU's instruction, which turns every NaN into the same NaN.
#pragma once
#include <binade/kernels/base/host_device.h>

#include <bit>
#include <cstdint>
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>
#endif

namespace binade {

namespace detail {

BINADE_HD constexpr uint16_t half_bits(float value) {
#if defined(__CUDA_ARCH__) || defined(BINADE_DEVICE_NUMERICS)
  if (!std::is_constant_evaluated()) {
    return __half_as_ushort(__float2half_rn(value));
  }
#endif
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) {  // infinity or NaN
    const bool nan = magnitude > 0x7f800000u;
    return static_cast<uint16_t>(sign | 0x7c00u | (nan ? 0x0200u | (magnitude >> 13 & 0x3ffu) : 0));
  }
  if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
    return static_cast<uint16_t>(sign | 0x7c00u);
  }
  if (magnitude >= 0x38800000u) {  // normal: rebias by 112, round 13 bits away
    const uint32_t rounded = magnitude - 0x38000000u + 0x0fffu + (magnitude >> 13 & 1u);
    return static_cast<uint16_t>(sign | rounded >> 13);
  }
  if (magnitude < 0x33000000u) {  // below 2^-25: zero
    return sign;
  }
  const uint32_t shift = 126u - (magnitude >> 23);  // 14 to 24
  const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t kept = significand >> shift;
  const uint32_t rest = significand & ((1u << shift) - 1u);
  const uint32_t half_ulp = 1u << (shift - 1u);
  return static_cast<uint16_t>(sign |
                               (kept + (rest > half_ulp || (rest == half_ulp && (kept & 1u)))));
}

BINADE_HD constexpr float half_value(uint16_t bits) {
#if defined(__CUDA_ARCH__) || defined(BINADE_DEVICE_NUMERICS)
  if (!std::is_constant_evaluated()) {
    return __half2float(__ushort_as_half(bits));
  }
#endif
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = bits >> 10 & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 0x1f) {
    return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13 | (fraction ? 0x400000u : 0));
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | (exponent + 112u) << 23 | fraction << 13);
  }
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // zero or subnormal: exact
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

BINADE_HD constexpr uint16_t bfloat16_bits(float value) {
#if defined(__CUDA_ARCH__) || defined(BINADE_DEVICE_NUMERICS)
  if (!std::is_constant_evaluated()) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  }
#endif
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>(bits >> 16 | 0x40u);  // quiet NaN
  }
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// double to float with round-to-odd, so that a second rounding to 16 bits is a correct single one.
BINADE_HD constexpr float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (back == value || value != value || (bits & 1u) || (bits & 0x7fffffffu) == 0x7f800000u) {
    return nearest;
  }
  // An even significand: step to the odd neighbour on the other side of the exact value.
  const bool away = (back < value) == (value > 0);
  return std::bit_cast<float>(away ? bits + 1u : bits - 1u);
}

}  // namespace detail

struct half {
  uint16_t bits = 0;

  half() = default;
  BINADE_HD constexpr explicit half(float value) : bits(detail::half_bits(value)) {}
  BINADE_HD constexpr explicit half(double value)
      : bits(detail::half_bits(detail::round_to_odd(value))) {}
  BINADE_HD static constexpr half from_bits(uint16_t bits) {
    half h;
    h.bits = bits;
    return h;
  }
  BINADE_HD constexpr explicit operator float() const { return detail::half_value(bits); }
  BINADE_HD constexpr explicit operator double() const { return detail::half_value(bits); }
};

struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  BINADE_HD constexpr explicit bfloat16(float value) : bits(detail::bfloat16_bits(value)) {}
  BINADE_HD constexpr explicit bfloat16(double value)
      : bits(detail::bfloat16_bits(detail::round_to_odd(value))) {}
  BINADE_HD static constexpr bfloat16 from_bits(uint16_t bits) {
    bfloat16 b;
    b.bits = bits;
    return b;
  }
  BINADE_HD constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  BINADE_HD constexpr explicit operator double() const { return static_cast<float>(*this); }
};

static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2);

}  // namespace binade
