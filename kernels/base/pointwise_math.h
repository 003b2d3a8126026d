// Elementary functions for the pointwise functors. On the host the float versions are branch-free,
// so that loops over them vectorise; each is within 3 units in the last place and handles
// infinities, NaN and subnormal results. The double versions, and on the device all versions except
// gelu's, call the C library; gelu through erfc would lose 170 units there, because rounding the
// argument moves erfc by its square. In an anonymous namespace because each instruction set
// compiles its own copy (kernels/base/isa.h).
#pragma once
#include <binade/kernels/base/gelu_math.h>
#include <binade/kernels/base/host_device.h>

#include <cstdint>

// The branches of the device, also in host execution with a device's numerics.
#if defined(__CUDACC__) || defined(BINADE_DEVICE_NUMERICS)
#define BINADE_DEVICE_MATH
#endif

namespace binade::kernels {
namespace {

#ifdef BINADE_DEVICE_MATH

#define BINADE_MATH(name, function) \
  template <class T>                \
  BINADE_HD inline T name(T x) {    \
    return function(x);             \
  }
BINADE_MATH(math_exp, exp)
BINADE_MATH(math_expm1, expm1)
BINADE_MATH(math_log, log)
BINADE_MATH(math_log1p, log1p)
BINADE_MATH(math_log1p_unit, log1p)
BINADE_MATH(math_tanh, tanh)
BINADE_MATH(math_sqrt, sqrt)
BINADE_MATH(math_sin, sin)
BINADE_MATH(math_cos, cos)
BINADE_MATH(math_erf, erf)
#undef BINADE_MATH
template <class T>
BINADE_HD inline T math_pow(T x, T e) {
  return pow(x, e);
}
template <class T>
BINADE_HD inline T math_normal_cdf(T x) {
  return T(0.5) * erfc(x * T(-0.70710678118654752440));
}

#else

inline double math_exp(double x) { return __builtin_exp(x); }
inline double math_expm1(double x) { return __builtin_expm1(x); }
inline double math_log(double x) { return __builtin_log(x); }
inline double math_log1p(double x) { return __builtin_log1p(x); }
inline double math_log1p_unit(double x) { return __builtin_log1p(x); }
inline double math_tanh(double x) { return __builtin_tanh(x); }
inline double math_sqrt(double x) { return __builtin_sqrt(x); }
inline double math_sin(double x) { return __builtin_sin(x); }
inline double math_cos(double x) { return __builtin_cos(x); }
inline double math_pow(double x, double e) { return __builtin_pow(x, e); }
inline double math_erf(double x) { return __builtin_erf(x); }
inline double math_normal_cdf(double x) {
  return 0.5 * __builtin_erfc(x * -0.70710678118654752440);
}

inline float math_sqrt(float x) { return __builtin_sqrtf(x); }
inline float math_sin(float x) { return __builtin_sinf(x); }
inline float math_cos(float x) { return __builtin_cosf(x); }
inline float math_pow(float x, float e) { return __builtin_powf(x, e); }

// x = n ln 2 + r, |r| <= ln(2) / 2, and p = exp(r) - 1.
struct ExpParts {
  int32_t n;
  float p;
};
inline ExpParts exp_parts(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;  // the first constant has 15 bits
  return {to_bits(shifted) - to_bits(kRound), small_expm1(r)};
}
inline float power_of_two(int32_t n) { return from_bits((n + 127) << 23); }  // -126 <= n <= 127

inline float math_exp(float x) {
  float limited = x < -104.0f ? -104.0f : x;
  limited = limited > 89.0f ? 89.0f : limited;
  const ExpParts e = exp_parts(limited);
  const int32_t half = e.n >> 1;  // 2^n as two factors: n ranges from -150 to 128
  return (1.0f + e.p) * power_of_two(half) * power_of_two(e.n - half);
}

inline float math_expm1(float x) {
  float limited = x < -18.0f ? -18.0f : x;
  limited = limited > 89.0f ? 89.0f : limited;
  const ExpParts e = exp_parts(limited);
  const float scale = power_of_two(e.n - 1);  // halved, because 2^128 is too large
  const float value = 2.0f * (scale * e.p + (scale - 0.5f));
  return x == 0.0f ? x : value;
}

// n ln 2 + log(1 + f) for f from sqrt(1/2) - 1 to sqrt(2) - 1.
inline float scaled_log(float n, float f) {
  float q = -6.201505399e-2f;
  q = q * f + 0.1053086474f;
  q = q * f + -0.1064619164f;
  q = q * f + 0.1103778336f;
  q = q * f + -0.1245074332f;
  q = q * f + 0.1428652455f;
  q = q * f + -0.1666800152f;
  q = q * f + 0.2000001004f;
  q = q * f + -0.2499999028f;
  q = q * f + 0.3333333328f;
  const float square = f * f;
  const float tail = q * (square * f) + n * 1.42860677e-6f - 0.5f * square;
  return n * 0.693145752f + (f + tail);
}

inline float math_log(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const float scaled = subnormal ? x * 8388608.0f : x;
  // Bits relative to sqrt(1/2); unsigned, because -0 would overflow.
  const auto bits = static_cast<int32_t>(static_cast<uint32_t>(to_bits(scaled)) - 0x3f3504f3u);
  const int32_t exponent = bits >> 23;
  const float f = from_bits((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
  const float n = static_cast<float>(exponent - (subnormal ? 23 : 0));
  float value = scaled_log(n, f);
  value = x <= 3.40282347e38f ? value : x;  // infinity and NaN
  value = x == 0.0f ? -__builtin_inff() : value;
  return x < 0.0f ? __builtin_nanf("") : value;
}

inline float math_log1p(float x) {
  const float u = 1.0f + x;
  const float lost = (x - (u - 1.0f)) / u;  // what rounding 1 + x dropped
  const float value = math_log(u) + (u < 3.0e38f && u > 0.0f ? lost : 0.0f);
  return x == 0.0f ? x : value;
}

// log(1 + x) for 0 <= x <= 1, where no special values occur: 1 + x = 2^n (1 + f).
inline float math_log1p_unit(float x) {
  const bool upper = x > 0.414213562f;
  return scaled_log(upper ? 1.0f : 0.0f, upper ? (x - 1.0f) * 0.5f : x);
}

// z P(z^2) / Q(z^2). From the limit on tanh rounds to 1, which the quotient there does not.
inline float math_tanh(float x) {
  constexpr float kLimit = 9.02f;
  const float z = magnitude_up_to(kLimit, x), s = z * z;
  float p = 1.3341869542e-8f;
  p = p * s + 2.0602693305e-5f;
  p = p * s + 3.4953248646e-3f;
  p = p * s + 0.13380846344f;
  p = p * s + 1.0f;
  float q = 7.7721596784e-7f;
  q = q * s + 3.2851159841e-4f;
  q = q * s + 2.5876111485e-2f;
  q = q * s + 0.46714163592f;
  q = q * s + 1.0f;
  const float near = magnitude_up_to(1.0f, z * p / q);
  const float y = __builtin_copysignf(z < kLimit ? near : 1.0f, x);
  return x != x ? x : y;
}

// exp(-factor z^2) for z >= 0, factor 1 or 1/2, without the error of rounding z^2.
inline float gauss(float z, float factor) {
  const float high = from_bits(to_bits(z) & ~0xfff);  // 12 bits: the square is exact
  return math_exp(-factor * (high * high)) * math_exp(factor * ((high - z) * (high + z)));
}

// erfc(z) exp(z^2) = u P(u) with u = 1 / (z + 3), for z >= 0.
inline float scaled_erfc(float z) {
  const float u = 1.0f / (z + 3.0f), t = 6.0f * u - 1.0f;
  float p = 3.288561776e-4f;
  p = p * t + -4.859588483e-4f;
  p = p * t + -3.086792467e-3f;
  p = p * t + -1.220494686e-3f;
  p = p * t + 2.684176241e-2f;
  p = p * t + 0.1195268339f;
  p = p * t + 0.3104658763f;
  p = p * t + 0.5902285311f;
  p = p * t + 0.8833944866f;
  p = p * t + 1.074006904f;
  return u * p;
}

inline float math_erf(float x) {
  const float z = __builtin_fabsf(x), s = x * x;
  const float limited = z > 11.0f ? 11.0f : z;
  float p = 7.875875063e-5f;
  p = p * s + -8.016864287e-4f;
  p = p * s + 5.189087423e-3f;
  p = p * s + -2.685421201e-2f;
  p = p * s + 0.1128359472f;
  p = p * s + -0.3761262667f;
  p = p * s + 1.128379166f;
  const float far = __builtin_copysignf(1.0f - gauss(limited, 1.0f) * scaled_erfc(limited), x);
  return z < 1.0f ? x * p : far;
}

// v = 2 sqrt(2 / pi) z (1 + 0.044715 z^2), so that gelu_tanh is x sigmoid(v); exp(-v) as
// lifted_exp.
struct TanhGate {
  float lifted_e, sum;  // 1 + exp(-v)
};
inline TanhGate tanh_gate(float z) {
  const float e = lifted_exp(-1.59576912f * z * (1.0f + 0.044715f * z * z));
  return {e, e * kUnlifted + 1.0f};
}

inline float math_gelu_tanh(float x) {
  const float z = magnitude_up_to(11.0f, x);
  const TanhGate gate = tanh_gate(z);
  return above(x) - z * (gate.lifted_e / gate.sum) * kUnlifted;
}

inline float math_gelu_tanh_slope(float x) {
  const float z = magnitude_up_to(11.0f, x);
  const TanhGate gate = tanh_gate(z);
  const float upper = 1.0f / gate.sum;  // sigmoid(v)
  const float slope = 1.59576912f * (1.0f + 0.134145f * z * z);
  const float below = (gate.lifted_e * upper) * (1.0f - z * upper * slope) * kUnlifted;
  const float whole = x > 0.0f ? 1.0f - below : below;
  return x != x ? x : whole;
}

// exp(x) / (1 + exp(x)) for negative x, because exp(-x) would overflow before the result is 0.
inline float math_sigmoid(float x) {
  const float e = lifted_exp(-magnitude_up_to(104.0f, x)) * kUnlifted;
  const float y = (x < 0.0f ? e : 1.0f) / (1.0f + e);
  return x != x ? x : y;
}

#endif

// A function of the C library in the precision of T, float or double: BINADE_LIBM(T, atan2, a, b).
// Loops over it do not vectorise on the host.
#ifdef BINADE_DEVICE_MATH
#define BINADE_LIBM(T, function, ...) function(__VA_ARGS__)
#else
#define BINADE_LIBM(T, function, ...)                               \
  static_cast<T>(sizeof(T) == 8 ? __builtin_##function(__VA_ARGS__) \
                                : __builtin_##function##f(__VA_ARGS__))
#endif

// x between -limit and limit. A slope takes it where the limit gives the value at infinity already:
// infinity times the 0 beside it would be NaN.
template <class T>
BINADE_HD inline T math_up_to(T limit, T x) {
  const T raised = x < -limit ? -limit : x;
  return raised > limit ? limit : raised;
}

// x times the standard normal distribution function, and the derivative of that.
template <class T>
BINADE_HD inline T math_gelu(T x) {
  return x * math_normal_cdf(x);
}
template <class T>
BINADE_HD inline T math_gelu_slope(T x) {
  const T z = math_up_to(T(1000), x);
  return math_normal_cdf(x) + z * (T(0.39894228040143267794) * math_exp(T(-0.5) * x * x));
}

// 1 / (1 + exp(-x)), rewritten with exp(x) for negative x: exp(-x) would overflow before the result
// is 0.
template <class T>
BINADE_HD inline T math_sigmoid(T x) {
  const T e = math_exp(x < T(0) ? x : -x);
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}
#ifdef BINADE_DEVICE_MATH
// a / b for b in [1, 2], within 2 units of the last place: a tenth of the instructions of a
// division that is rounded correctly.
BINADE_HD inline float math_quotient(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdividef(a, b);
#else
  return a / b;
#endif
}
BINADE_HD inline float math_sigmoid(float x) {
  const float e = math_exp(x < 0.0f ? x : -x);
  return math_quotient(x < 0.0f ? e : 1.0f, 1.0f + e);
}
#endif

// x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), as x sigmoid(2 u), and its
// derivative.
template <class T>
BINADE_HD inline T math_gelu_tanh(T x) {
  return x * math_sigmoid(T(1.5957691216057307117) * x * (T(1) + T(0.044715) * x * x));
}
template <class T>
BINADE_HD inline T math_gelu_tanh_slope(T x_) {
  constexpr double kTwoSlope = 1.5957691216057307117, kCubic = 0.044715;
  const T x = math_up_to(T(1000), x_);
  const T z = T(kTwoSlope) * x * (T(1) + T(kCubic) * x * x);
  const T rest = math_sigmoid(-z);  // 1 - s would cancel
  return math_sigmoid(z) * (T(1) + x * rest * T(kTwoSlope) * (T(1) + T(3 * kCubic) * x * x));
}
#ifdef BINADE_DEVICE_MATH
// The same with one exponential and one division.
BINADE_HD inline float math_gelu_tanh_slope(float x_) {
  constexpr float kTwoSlope = 1.5957691216057307f, kCubic = 0.044715f;
  const float x = math_up_to(1000.0f, x_);
  const float z = kTwoSlope * x * (1.0f + kCubic * x * x);
  const float e = math_exp(z < 0.0f ? z : -z), upper = math_quotient(1.0f, 1.0f + e);
  const float lower = e * upper;  // the sigmoids of |z| and -|z|
  const float s = z < 0.0f ? lower : upper, rest = z < 0.0f ? upper : lower;
  return s * (1.0f + x * rest * kTwoSlope * (1.0f + 3 * kCubic * x * x));
}
#endif

// 1 - s, where s is the sigmoid of x. f32 avoids the cancellation; f64 subtracts as PyTorch does,
// because PyTorch's f64 results are the reference.
template <class T>
BINADE_HD inline T math_sigmoid_rest(T x, T s) {
  return sizeof(T) == 8 ? T(1) - s : math_sigmoid(-x);
}

// log(1 + exp(x)) without overflow.
template <class T>
BINADE_HD inline T math_softplus(T x) {
  const T magnitude = x < T(0) ? -x : x;
  return (x > T(0) ? x : T(0)) + math_log1p_unit(math_exp(-magnitude));
}

// a + w (b - a), exactly a at w = 0 and b at w = 1.
template <class T>
BINADE_HD inline T math_lerp(T a, T b, T w) {
  const T difference = b - a;
  const T from_a = a + w * difference, from_b = b - (T(1) - w) * difference;
  return (w < T(0.5)) & (w > T(-0.5)) ? from_a : from_b;
}

}  // namespace
}  // namespace binade::kernels
