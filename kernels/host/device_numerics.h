// The numerics of a GPU on the host, for kernels of the preset gpu-numerics
// (BINADE_DEVICE_NUMERICS), whose command line includes it first: conversions to and from 16 bits
// that turn every NaN into the same NaN, and the approximate functions built from ex2 and lg2. The
// compiler's flags contract a * b + c to one rounding, as nvcc does, and
// kernels/base/pointwise_math.h takes the branches of the device. Functions have internal linkage
// or are always inlined: no other source of the program may get this code.
//
// It does not imitate the last bits of the device's own ex2, lg2, rsqrt, sin and cos units, nor the
// NaN that arithmetic gives.
#pragma once
#include <math.h>  // float versions in the global namespace, as in device code

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace binade::kernels::host {
namespace {

inline constexpr uint16_t kNan16 = 0x7fff;  // of both 16-bit formats
inline constexpr uint32_t kNan32 = 0x7fffffff;

// exp as ex2.approx(x log2(e)): results below the normal range become 0.
inline float approximate_exp(float x) {
  const float y = std::exp2(x * 1.4426950408889634f);
  return y < 1.17549435e-38f ? 0.0f : y;
}
inline float approximate_log(float x) {
  const float flushed = std::fabs(x) < 1.17549435e-38f ? std::copysign(0.0f, x) : x;
  return std::log2(flushed) * 0.693147180559945f;
}
// a * (1 / b); 0 where 1 / b would be subnormal.
inline float approximate_quotient(float a, float b) {
  const float magnitude = std::fabs(b);
  if (magnitude > 0x1p126f && magnitude <= 3.40282347e38f) {
    return std::isinf(a) ? std::nanf("") : std::copysign(0.0f, a) * std::copysign(1.0f, b);
  }
  return a * (1.0f / b);
}

}  // namespace
}  // namespace binade::kernels::host

// The names of cuda_fp16.h and cuda_bf16.h that kernels/base/half.h uses.
// NOLINTBEGIN(readability-identifier-naming)
namespace {

struct __half_raw {
  uint16_t x;
};

constexpr uint16_t __half_as_ushort(__half_raw h) { return h.x; }
constexpr __half_raw __ushort_as_half(uint16_t bits) { return {bits}; }
constexpr __half_raw __float2half_rn(float value) {
  if (value != value) {
    return {binade::kernels::host::kNan16};
  }
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
    return {static_cast<uint16_t>(sign | 0x7c00u)};
  }
  if (magnitude < 0x38800000u) {  // subnormal: a multiple of 2^-24, which the sum rounds to
    const float shifted = std::bit_cast<float>(magnitude) * 0x1p24f + 0x1p23f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) & 0x7fffu))};
  }
  const uint32_t rounded = magnitude - 0x38000000u + 0x0fffu + (magnitude >> 13 & 1u);
  return {static_cast<uint16_t>(sign | rounded >> 13)};
}
constexpr float __half2float(__half_raw h) {
  const uint32_t sign = static_cast<uint32_t>(h.x & 0x8000u) << 16;
  const uint32_t exponent = h.x >> 10 & 0x1fu, fraction = h.x & 0x3ffu;
  if (exponent == 0x1f) {
    return std::bit_cast<float>(fraction ? binade::kernels::host::kNan32 : sign | 0x7f800000u);
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | (exponent + 112u) << 23 | fraction << 13);
  }
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

using __bfloat16_raw = __half_raw;
constexpr uint16_t __bfloat16_as_ushort(__bfloat16_raw b) { return b.x; }
constexpr __bfloat16_raw __float2bfloat16_rn(float value) {
  if (value != value) {
    return {binade::kernels::host::kNan16};
  }
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

}  // namespace
// NOLINTEND(readability-identifier-naming)
