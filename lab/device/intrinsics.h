// Arithmetic functions of CUDA device code: fast math, rounding modes, bit functions, min and max.
#pragma once
#include <binade/kernels/host/cuda_types.h>
#include <binade/lab/device/launch.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bit>
#include <type_traits>

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.

// The C library declares __expf and others, so these are macros. A finite argument whose
// exponential is infinite is noted with its line.
inline float binade_lab_expf(float x, BINADE_SITE) {
  const float y = ::expf(x);
  if (__builtin_expect(__builtin_isinf(y) && !__builtin_isinf(x), 0)) {
    binade::lab::note_number(binade::lab::NumberEvent::exp_overflow, x, site);
  }
  return y;
}
namespace std {
using ::binade_lab_expf;
}
#define expf binade_lab_expf
#define __expf binade_lab_expf
#define __exp10f(x) ::exp10f(x)
#define __exp2f(x) ::exp2f(x)
#define __logf(x) ::logf(x)
#define __log2f(x) ::log2f(x)
#define __log10f(x) ::log10f(x)
#define __powf(x, y) ::powf(x, y)
#define __sinf(x) ::sinf(x)
#define __cosf(x) ::cosf(x)
#define __tanf(x) ::tanf(x)
#define __sincosf(x, s, c) ::sincosf(x, s, c)
#define __fdividef(x, y) ((x) / (y))
#define __fdiv_rn(x, y) ((x) / (y))
#define __fsqrt_rn(x) ::sqrtf(x)
#define __frcp_rn(x) (1.0f / (x))
#define __frsqrt_rn(x) (1.0f / ::sqrtf(x))
#define __fadd_rn(x, y) ((x) + (y))
#define __fsub_rn(x, y) ((x) - (y))
#define __fmul_rn(x, y) ((x) * (y))
#define __fmaf_rn(x, y, z) ::fmaf(x, y, z)
#define __saturatef(x) ::fminf(::fmaxf(x, 0.0f), 1.0f)
inline float fdividef(float x, float y) { return x / y; }
inline float rcbrtf(float x) { return 1.0f / ::cbrtf(x); }
inline float normcdff(float x) { return 0.5f * ::erfcf(-x * 0.70710678f); }
inline float __tanhf(float x) { return ::tanhf(x); }
inline float sinpif(float x) { return ::sinf(x * 3.14159265f); }
inline float cospif(float x) { return ::cosf(x * 3.14159265f); }
inline float norm3df(float x, float y, float z) { return ::sqrtf(x * x + y * y + z * z); }
inline float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }

// min and max of two numbers; different types are converted as C++ converts them.
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  if constexpr (std::is_floating_point_v<std::common_type_t<A, B>>) {
    return a < b || a != a ? static_cast<std::common_type_t<A, B>>(b) : a;
  } else {
    using T = std::common_type_t<A, B>;
    return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
  }
}
template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  if constexpr (std::is_floating_point_v<std::common_type_t<A, B>>) {
    return b < a || a != a ? static_cast<std::common_type_t<A, B>>(b) : a;
  } else {
    using T = std::common_type_t<A, B>;
    return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
  }
}

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline int __float2int_rn(float x) { return static_cast<int>(::rintf(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(::floorf(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(::ceilf(x)); }
inline unsigned __float2uint_rn(float x) { return static_cast<unsigned>(::rintf(x)); }
inline unsigned __float2uint_rz(float x) { return static_cast<unsigned>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clzll(long long x) {
  return x != 0 ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64;
}
inline unsigned __brev(unsigned x) {
  unsigned y = 0;
  for (int i = 0; i < 32; ++i) {
    y = y << 1 | (x >> i & 1u);
  }
  return y;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t both = static_cast<uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<unsigned>(both >> (selector >> 4 * i & 7u) * 8 & 0xffu) << 8 * i;
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const uint64_t both = static_cast<uint64_t>(high) << 32 | low;
  return static_cast<unsigned>(both << (shift & 31u) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const uint64_t both = static_cast<uint64_t>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31u));
}
inline int __mul24(int x, int y) { return x * y; }
inline unsigned __umul24(unsigned x, unsigned y) { return x * y; }
inline int __mulhi(int x, int y) { return static_cast<int>(static_cast<int64_t>(x) * y >> 32); }
inline unsigned __sad(int x, int y, unsigned z) {
  return z + static_cast<unsigned>(x < y ? y - x : x - y);
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<int8_t>(a >> 8 * i) * static_cast<int8_t>(b >> 8 * i);
  }
  return c;
}

// Loads and stores with cache hints, which do not change results.
template <class T>
inline T __ldcg(const T* p) {
  return *p;
}
template <class T>
inline T __ldca(const T* p) {
  return *p;
}
template <class T>
inline T __ldcs(const T* p) {
  return *p;
}
template <class T>
inline void __stcg(T* p, T value) {
  *p = value;
}
template <class T>
inline void __stcs(T* p, T value) {
  *p = value;
}
template <class T>
inline void __stwt(T* p, T value) {
  *p = value;
}
inline unsigned __cvta_generic_to_shared(const void* p) {
  return static_cast<unsigned>(reinterpret_cast<uintptr_t>(p));
}
inline void __trap(BINADE_SITE) { binade::lab::trap(site); }
#define __builtin_assume(condition) static_cast<void>(0)

#undef assert
#define assert(condition)             \
  ((condition) ? static_cast<void>(0) \
               : ::binade::lab::fail_assertion(#condition, __FILE__, __LINE__))
// NOLINTEND(readability-identifier-naming)
