// The functions of cuda_fp16.h and cuda_bf16.h.
#pragma once
#include <binade/kernels/host/cuda_types.h>
#include <binade/lab/device/half.h>

#include <bit>

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.
#define BINADE_LAB_UNARY(name, expression)                                               \
  template <binade::lab::Format kFormat>                                                 \
  inline binade::lab::Narrow<kFormat> h##name(binade::lab::Narrow<kFormat> value) {      \
    const float x = value;                                                               \
    return binade::lab::Narrow<kFormat>(expression);                                     \
  }                                                                                      \
  template <binade::lab::Format kFormat>                                                 \
  inline binade::lab::NarrowPair<kFormat> h2##name(binade::lab::NarrowPair<kFormat> v) { \
    return {h##name(v.x), h##name(v.y)};                                                 \
  }
BINADE_LAB_UNARY(exp, expf(x))
BINADE_LAB_UNARY(exp2, exp2f(x))
BINADE_LAB_UNARY(log, logf(x))
BINADE_LAB_UNARY(log2, log2f(x))
BINADE_LAB_UNARY(sqrt, sqrtf(x))
BINADE_LAB_UNARY(rsqrt, 1.0f / sqrtf(x))
BINADE_LAB_UNARY(rcp, 1.0f / x)
BINADE_LAB_UNARY(sin, sinf(x))
BINADE_LAB_UNARY(cos, cosf(x))
BINADE_LAB_UNARY(floor, floorf(x))
BINADE_LAB_UNARY(ceil, ceilf(x))
BINADE_LAB_UNARY(rint, rintf(x))
BINADE_LAB_UNARY(trunc, truncf(x))
BINADE_LAB_UNARY(tanh, tanhf(x))
#undef BINADE_LAB_UNARY

#define BINADE_LAB_BINARY(name, expression)                                                  \
  template <binade::lab::Format kFormat>                                                     \
  inline binade::lab::Narrow<kFormat> __h##name(binade::lab::Narrow<kFormat> a,              \
                                                binade::lab::Narrow<kFormat> b) {            \
    return binade::lab::Narrow<kFormat>(expression);                                         \
  }                                                                                          \
  template <binade::lab::Format kFormat>                                                     \
  inline binade::lab::NarrowPair<kFormat> __h##name##2(binade::lab::NarrowPair<kFormat> a,   \
                                                       binade::lab::NarrowPair<kFormat> b) { \
    return {__h##name(a.x, b.x), __h##name(a.y, b.y)};                                       \
  }
BINADE_LAB_BINARY(add, float(a) + float(b))
BINADE_LAB_BINARY(sub, float(a) - float(b))
BINADE_LAB_BINARY(mul, float(a) * float(b))
BINADE_LAB_BINARY(max, fmaxf(a, b))
BINADE_LAB_BINARY(min, fminf(a, b))
#undef BINADE_LAB_BINARY
template <binade::lab::Format kFormat>
inline binade::lab::Narrow<kFormat> __hdiv(binade::lab::Narrow<kFormat> a,
                                           binade::lab::Narrow<kFormat> b) {
  return a / b;
}
template <binade::lab::Format kFormat>
inline binade::lab::NarrowPair<kFormat> __h2div(binade::lab::NarrowPair<kFormat> a,
                                                binade::lab::NarrowPair<kFormat> b) {
  return a / b;
}
// Rounds once: double holds the product and the sum of 16-bit numbers precisely enough.
template <binade::lab::Format kFormat>
inline binade::lab::Narrow<kFormat> __hfma(binade::lab::Narrow<kFormat> a,
                                           binade::lab::Narrow<kFormat> b,
                                           binade::lab::Narrow<kFormat> c) {
  const double exact = double(float(a)) * double(float(b)) + double(float(c));
  return binade::lab::Narrow<kFormat>(static_cast<float>(exact));
}
template <binade::lab::Format kFormat>
inline binade::lab::NarrowPair<kFormat> __hfma2(binade::lab::NarrowPair<kFormat> a,
                                                binade::lab::NarrowPair<kFormat> b,
                                                binade::lab::NarrowPair<kFormat> c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
template <binade::lab::Format kFormat>
inline binade::lab::Narrow<kFormat> __hneg(binade::lab::Narrow<kFormat> a) {
  return -a;
}
template <binade::lab::Format kFormat>
inline binade::lab::NarrowPair<kFormat> __hneg2(binade::lab::NarrowPair<kFormat> a) {
  return {-a.x, -a.y};
}
template <binade::lab::Format kFormat>
inline binade::lab::Narrow<kFormat> __habs(binade::lab::Narrow<kFormat> a) {
  return binade::lab::Narrow<kFormat>(fabsf(a));
}
#define BINADE_LAB_TEST(name, op)                                                         \
  template <binade::lab::Format kFormat>                                                  \
  inline bool __h##name(binade::lab::Narrow<kFormat> a, binade::lab::Narrow<kFormat> b) { \
    return float(a) op float(b);                                                          \
  }
BINADE_LAB_TEST(eq, ==)
BINADE_LAB_TEST(ne, !=)
BINADE_LAB_TEST(lt, <)
BINADE_LAB_TEST(gt, >)
BINADE_LAB_TEST(le, <=)
BINADE_LAB_TEST(ge, >=)
#undef BINADE_LAB_TEST
template <binade::lab::Format kFormat>
inline bool __hisnan(binade::lab::Narrow<kFormat> a) {
  return float(a) != float(a);
}
template <binade::lab::Format kFormat>
inline int __hisinf(binade::lab::Narrow<kFormat> a) {
  return __builtin_isinf_sign(float(a));
}
template <binade::lab::Format kFormat>
inline binade::lab::Narrow<kFormat> __low2half(binade::lab::NarrowPair<kFormat> v) {
  return v.x;
}
template <binade::lab::Format kFormat>
inline binade::lab::Narrow<kFormat> __high2half(binade::lab::NarrowPair<kFormat> v) {
  return v.y;
}
template <binade::lab::Format kFormat>
inline float __low2float(binade::lab::NarrowPair<kFormat> v) {
  return v.x;
}
template <binade::lab::Format kFormat>
inline float __high2float(binade::lab::NarrowPair<kFormat> v) {
  return v.y;
}

#define BINADE_LAB_FORMAT(name, Type, Pair)                                                 \
  inline Type __float2##name(float x) { return Type(x); }                                   \
  inline Type __float2##name##_rn(float x) { return Type(x); }                              \
  inline Type __double2##name(double x) { return Type(static_cast<float>(x)); }             \
  inline float __##name##2float(Type x) { return x; }                                       \
  inline Type __int2##name##_rn(int x) { return Type(static_cast<float>(x)); }              \
  inline Type __uint2##name##_rn(unsigned x) { return Type(static_cast<float>(x)); }        \
  inline int __##name##2int_rn(Type x) { return static_cast<int>(rintf(x)); }               \
  inline int __##name##2int_rz(Type x) { return static_cast<int>(truncf(x)); }              \
  inline Pair __##name##2##name##2(Type x) { return {x, x}; }                               \
  inline Pair __halves2##name##2(Type x, Type y) { return {x, y}; }                         \
  inline Pair __float2##name##2_rn(float x) { return {Type(x), Type(x)}; }                  \
  inline Pair __floats2##name##2_rn(float x, float y) { return {Type(x), Type(y)}; }        \
  inline float2 __##name##22float2(Pair v) { return {float(v.x), float(v.y)}; }             \
  inline Pair __float22##name##2_rn(float2 v) { return {Type(v.x), Type(v.y)}; }            \
  inline unsigned short __##name##_as_ushort(Type x) { return x.bits; }                     \
  inline short __##name##_as_short(Type x) { return static_cast<short>(x.bits); }           \
  inline Type __ushort_as_##name(unsigned short bits) { return std::bit_cast<Type>(bits); } \
  inline Type __short_as_##name(short bits) { return std::bit_cast<Type>(bits); }
BINADE_LAB_FORMAT(half, __half, __half2)
BINADE_LAB_FORMAT(bfloat16, __nv_bfloat16, __nv_bfloat162)
#undef BINADE_LAB_FORMAT
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
// NOLINTEND(readability-identifier-naming)
