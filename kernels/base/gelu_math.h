// gelu in f32 and its slope, the same code on the host and on the device: within 5 units in the
// last place, as far as the result is not subnormal. x / 2 erfc(-x / sqrt(2)) by a library's erfc
// would lose 170 units, because rounding the argument moves erfc by its square. In an anonymous
// namespace because each instruction set compiles its own copy (kernels/base/isa.h).
#pragma once
#include <binade/kernels/base/host_device.h>

#include <cstdint>

namespace binade::kernels {
namespace {

BINADE_HD inline float from_bits(int32_t bits) { return __builtin_bit_cast(float, bits); }
BINADE_HD inline int32_t to_bits(float x) { return __builtin_bit_cast(int32_t, x); }

// exp(r) - 1 for |r| <= ln(2) / 2.
BINADE_HD inline float small_expm1(float r) {
  float q = 1.988352445e-4f;
  q = q * r + 1.392692661e-3f;
  q = q * r + 8.333320387e-3f;
  q = q * r + 4.166655011e-2f;
  q = q * r + 0.1666666667f;
  q = q * r + 0.5f;
  return q * (r * r) + r;
}

// 2^40 exp(x) for -115 <= x <= 0. The factor 2^40 makes it a normal number, so a subnormal result
// is rounded only once, by the multiplication that removes the factor.
inline constexpr float kUnlifted = 0x1p-40f;
struct LiftedPower {
  float n, scale;  // 2^(n + 40), n the integer next to x / ln 2
};
BINADE_HD inline LiftedPower lifted_power(float x) {
  // The last bits of kRound are 127 + 40, so the last bits of the rounded sum are the exponent
  // field of 2^(n+40).
  constexpr float kRound = 12582912.0f + 167.0f;
  const float shifted = x * 1.44269504f + kRound;
  const auto bits = static_cast<uint32_t>(to_bits(shifted)) << 23;
  return {shifted - kRound, from_bits(static_cast<int32_t>(bits))};
}
BINADE_HD inline float lifted_exp(float x) {
  const LiftedPower power = lifted_power(x);
  const float r = (x - power.n * 0.693145752f) - power.n * 1.42860677e-6f;
  return small_expm1(r) * power.scale + power.scale;
}
// lifted_exp(x + rest), where rest is far below 1.
BINADE_HD inline float lifted_exp(float x, float rest) {
  const LiftedPower power = lifted_power(x + rest);
  const float r = ((x - power.n * 0.693145752f) - power.n * 1.42860677e-6f) + rest;
  return small_expm1(r) * power.scale + power.scale;
}

// min(|x|, limit), computed on the bits, which order magnitudes as the numbers do. NaN gives the
// limit.
BINADE_HD inline float magnitude_up_to(float limit, float x) {
  const int32_t bits = to_bits(x) & 0x7fffffff;
  return from_bits(bits < to_bits(limit) ? bits : to_bits(limit));
}

// The upper tail of the standard normal distribution at z, 0 <= z <= 15, is exp(-z^2 / 2) ratio.
// The exponential is lifted; ratio = erfc(z / sqrt(2)) exp(z^2 / 2) / 2, a quotient of polynomials.
struct NormalTail {
  float lifted_bell, ratio;
};
BINADE_HD inline NormalTail normal_tail(float z) {
#if defined(__CUDA_ARCH__)
  const float square = z * z, rest = fmaf(z, z, -square);
#elif defined(__FMA__)
  const float square = z * z, rest = __builtin_fmaf(z, z, -square);
#else
  const float high = from_bits(to_bits(z) & ~0xfff);  // 12 bits: the square is exact
  const float square = high * high, rest = (z - high) * (z + high);
#endif
  float p = 4.0772087277e-3f;
  p = p * z + 4.0386493758e-2f;
  p = p * z + 0.18253041464f;
  p = p * z + 0.43738763232f;
  p = p * z + 0.50000000237f;
  float q = 1.0219923841e-2f;
  q = q * z + 0.10124052978f;
  q = q * z + 0.46760292655f;
  q = q * z + 1.1996463989f;
  q = q * z + 1.6726601752f;
  q = q * z + 1.0f;
  return {lifted_exp(-0.5f * square, -0.5f * rest), p / q};
}

// Activations x S(x) with S(x) = 1 - S(-x) are relu(x) - |x| S(-|x|). `above` is the relu. It
// passes NaN on, and gives NaN for minus infinity, as the formula does.
BINADE_HD inline float above(float x) { return x < 0.0f ? x * 0.0f : x; }
BINADE_HD inline float math_gelu(float x) {
  const float z = magnitude_up_to(15.0f, x);
  const NormalTail tail = normal_tail(z);
  return above(x) - z * (tail.lifted_bell * tail.ratio) * kUnlifted;
}

BINADE_HD inline float math_gelu_slope(float x) {
  const float z = magnitude_up_to(15.0f, x);
  const NormalTail tail = normal_tail(z);
  const float below = tail.lifted_bell * (tail.ratio - 0.398942280f * z) * kUnlifted;
  const float slope = x > 0.0f ? 1.0f - below : below;
  return x != x ? x : slope;
}

}  // namespace
}  // namespace binade::kernels
