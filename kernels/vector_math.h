// Vectors of one register for *_isa.cpp files: loads and stores of every floating dtype that
// convert to and from the compute type, exp, and reductions over lanes. To be included by *_isa.cpp
// only; all names have internal linkage, so no build for one instruction set can leak into another.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

#include <immintrin.h>

namespace binade::kernels::BINADE_ISA {
namespace {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class C>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(C));

template <class C>
inline constexpr C kInfinity = static_cast<C>(__builtin_inf());

template <class C>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(kVectorBytes)));
  typedef int32_t mask __attribute__((vector_size(kVectorBytes)));
  typedef uint32_t bits __attribute__((vector_size(kVectorBytes)));
};
template <>
struct VectorOf<double> {
  typedef double type __attribute__((vector_size(kVectorBytes)));
  typedef int64_t mask __attribute__((vector_size(kVectorBytes)));
  typedef uint64_t bits __attribute__((vector_size(kVectorBytes)));
};
template <class C>
using Vector = typename VectorOf<C>::type;
template <class C>
using Mask = typename VectorOf<C>::mask;  // lanes are 0 or -1; also a vector of signed integers
template <class C>
using Bits = typename VectorOf<C>::bits;

typedef uint16_t HalfBits
    __attribute__((vector_size(kVectorBytes / 2)));  // one vector of f16 or bf16

#define BINADE_INLINE [[gnu::always_inline]] inline

template <class C>
BINADE_INLINE Vector<C> broadcast(C value) {
  return value - Vector<C>{};  // subtraction, so that -0 stays -0
}

template <class To, class From>
BINADE_INLINE To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To out;
  __builtin_memcpy(&out, &value, sizeof out);
  return out;
}

// 0, 1, 2, ...
template <class C>
BINADE_INLINE Mask<C> lane_numbers() {
  Mask<C> lanes;
  for (int i = 0; i < kLanes<C>; ++i) {
    lanes[i] = i;
  }
  return lanes;
}

BINADE_INLINE Vector<float> widen_half(HalfBits h) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector<float>>(_mm512_maskz_cvtph_ps(0xffff, bits_as<__m256i>(h)));
#elif defined(__F16C__)
  return reinterpret_cast<Vector<float>>(_mm256_cvtph_ps(bits_as<__m128i>(h)));
#else
  const Bits<float> wide = __builtin_convertvector(h, Bits<float>);
  const Bits<float> magnitude = (wide & 0x7fffu) << 13;
  // Scaling by 2^112 rebiases the exponent and normalises subnormals, both exactly.
  const Vector<float> scaled = bits_as<Vector<float>>(magnitude) * 0x1p112f;
  const Bits<float> quiet =
      magnitude > 0x0f800000u ? Bits<float>{} + 0x7fc00000u : Bits<float>{} + 0x7f800000u;
  const Bits<float> finite = bits_as<Bits<float>>(scaled);
  const Bits<float> bits = magnitude >= 0x0f800000u ? (magnitude | quiet) : finite;
  return bits_as<Vector<float>>(bits | (wide & 0x8000u) << 16);
#endif
}

BINADE_INLINE HalfBits narrow_half(Vector<float> v) {
#if defined(__AVX512F__)
  return bits_as<HalfBits>(
      _mm512_maskz_cvtps_ph(0xffff, reinterpret_cast<__m512>(v), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  return bits_as<HalfBits>(_mm256_cvtps_ph(reinterpret_cast<__m256>(v), _MM_FROUND_TO_NEAREST_INT));
#else
  const Bits<float> bits = bits_as<Bits<float>>(v);
  const Bits<float> sign = bits >> 16 & 0x8000u;
  const Bits<float> magnitude = bits & 0x7fffffffu;
  const Bits<float> normal = (magnitude - 0x38000000u + 0x0fffu + (magnitude >> 13 & 1u)) >> 13;
  // Adding 1/2 lets the adder round at 2^-24, the subnormal unit.
  const Vector<float> shifted = bits_as<Vector<float>>(magnitude) + 0.5f;
  const Bits<float> subnormal = bits_as<Bits<float>>(shifted) - 0x3f000000u;
  Bits<float> half = magnitude < 0x38800000u ? subnormal : normal;
  half = magnitude >= 0x477ff000u ? Bits<float>{} + 0x7c00u : half;
  half = magnitude > 0x7f800000u ? (magnitude >> 13 & 0x3ffu) | 0x7e00u : half;
  return __builtin_convertvector(half | sign, HalfBits);
#endif
}

BINADE_INLINE Vector<float> widen_bfloat16(HalfBits h) {
  return bits_as<Vector<float>>(__builtin_convertvector(h, Bits<float>) << 16);
}

BINADE_INLINE HalfBits narrow_bfloat16(Vector<float> v) {
  const Bits<float> bits = bits_as<Bits<float>>(v);
  const Bits<float> rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const Bits<float> quiet = bits >> 16 | 0x40u;
  return __builtin_convertvector((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded, HalfBits);
}

// One vector from p, which may be unaligned.
template <class T>
BINADE_INLINE Vector<Compute<T>> load(const T* p) {
  if constexpr (sizeof(T) == 2) {
    HalfBits h;
    __builtin_memcpy(&h, p, sizeof h);
    return dtype_of<T> == DType::f16 ? widen_half(h) : widen_bfloat16(h);
  } else {
    Vector<T> v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
}

template <class T>
BINADE_INLINE void store(T* p, Vector<Compute<T>> v) {
  if constexpr (sizeof(T) == 2) {
    const HalfBits h = dtype_of<T> == DType::f16 ? narrow_half(v) : narrow_bfloat16(v);
    __builtin_memcpy(static_cast<void*>(p), &h, sizeof h);
  } else {
    __builtin_memcpy(static_cast<void*>(p), &v, sizeof v);
  }
}

// The first n < kLanes elements; the other lanes are `fill`.
template <class T>
BINADE_INLINE Vector<Compute<T>> load_part(const T* p, int64_t n, Compute<T> fill = 0) {
  using C = Compute<T>;
  alignas(kVectorBytes) unsigned char buffer[kLanes<C> * sizeof(T)] = {};
  __builtin_memcpy(buffer, p, static_cast<size_t>(n) * sizeof(T));
  const Vector<C> v = load(reinterpret_cast<const T*>(buffer));
  using Signed = decltype(Mask<C>{}[0] + 0);
  return lane_numbers<C>() < static_cast<Signed>(n) ? v : broadcast<C>(fill);
}

template <class T>
BINADE_INLINE void store_part(T* p, Vector<Compute<T>> v, int64_t n) {
  alignas(kVectorBytes) unsigned char buffer[kLanes<Compute<T>> * sizeof(T)];
  store(reinterpret_cast<T*>(buffer), v);
  __builtin_memcpy(static_cast<void*>(p), buffer, static_cast<size_t>(n) * sizeof(T));
}

// store past the caches (base/strided.h, kNontemporalBytes). p is aligned to the bytes of the
// store, and finish_nontemporal() makes the stores visible to other threads.
template <class T>
BINADE_INLINE void store_nontemporal(T* p, Vector<Compute<T>> v) {
  if constexpr (sizeof(T) == 2) {
    store(p, v);
  } else {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(p), bits_as<__m512i>(v));
#elif defined(__AVX2__)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), bits_as<__m256i>(v));
#else
    _mm_stream_si128(reinterpret_cast<__m128i*>(p), bits_as<__m128i>(v));
#endif
  }
}
BINADE_INLINE void finish_nontemporal() { _mm_sfence(); }

// Whether rows of `cols` elements, `stride` apart, can be stored so: whole aligned vectors.
template <class T>
BINADE_INLINE bool fits_nontemporal(const T* p, int64_t stride, int64_t cols) {
  return sizeof(T) > 2 && reinterpret_cast<uintptr_t>(p) % kVectorBytes == 0 &&
         stride % kLanes<T> == 0 && cols % kLanes<T> == 0;
}

// load and store of a whole vector or of its first n elements, the choice made at compile time.
template <bool kPart, class T>
BINADE_INLINE Vector<Compute<T>> load_some(const T* p, int64_t n, Compute<T> fill = 0) {
  return kPart ? load_part(p, n, fill) : load(p);
}

template <bool kPart, class T>
BINADE_INLINE void store_some(T* p, Vector<Compute<T>> v, int64_t n) {
  kPart ? store_part(p, v, n) : store(p, v);
}

template <bool kNontemporal, bool kPart, class T>
BINADE_INLINE void store_result(T* p, Vector<Compute<T>> v, int64_t n) {
  if constexpr (kNontemporal && !kPart) {
    store_nontemporal(p, v);
  } else {
    store_some<kPart>(p, v, n);
  }
}

// Calls f(part, i, n) for i = 0, kLanes, ... below size with n elements from i: part() is a
// compile-time constant, true for a last incomplete vector.
template <bool kValue>
struct Part {
  constexpr bool operator()() const { return kValue; }
};
template <class C, class F>
BINADE_INLINE void for_vectors(int64_t size, F&& f) {
  int64_t i = 0;
  for (; i + kLanes<C> <= size; i += kLanes<C>) {
    f(Part<false>{}, i, int64_t{kLanes<C>});
  }
  if (i < size) {
    f(Part<true>{}, i, size - i);
  }
}

// for_vectors with f(part, way, i, n), where way() counts 0 .. kWays - 1 round and round at compile
// time: sums in kWays accumulators, whose additions overlap.
template <int kValue>
struct Way {
  constexpr int operator()() const { return kValue; }
};
inline constexpr int kWays = 4;
template <class C, class F>
BINADE_INLINE void for_vectors_in_ways(int64_t size, F&& f) {
  constexpr int64_t kStep = kLanes<C>;
  int64_t i = 0;
  for (; i + kWays * kStep <= size; i += kWays * kStep) {
    f(Part<false>{}, Way<0>{}, i, kStep);
    f(Part<false>{}, Way<1>{}, i + kStep, kStep);
    f(Part<false>{}, Way<2>{}, i + 2 * kStep, kStep);
    f(Part<false>{}, Way<3>{}, i + 3 * kStep, kStep);
  }
  for (; i + kStep <= size; i += kStep) {
    f(Part<false>{}, Way<0>{}, i, kStep);
  }
  if (i < size) {
    f(Part<true>{}, Way<1>{}, i, size - i);
  }
}

// Of the line that holds p, for a row that comes next; any address will do.
BINADE_INLINE void prefetch(const void* p) { __builtin_prefetch(p); }

template <class C>
BINADE_INLINE Vector<C> max(Vector<C> a, Vector<C> b) {
  return a > b ? a : b;
}

template <class C>
BINADE_INLINE C reduce_add(Vector<C> v) {
  C lanes[kLanes<C>];
  __builtin_memcpy(lanes, &v, sizeof v);
  for (int width = kLanes<C> / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) {
      lanes[i] += lanes[i + width];
    }
  }
  return lanes[0];
}

template <class C>
BINADE_INLINE C reduce_add(const Vector<C> (&sums)[kWays]) {
  return reduce_add<C>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// A NaN is skipped; all NaN gives NaN or the largest of the rest.
template <class C>
BINADE_INLINE C reduce_max(Vector<C> v) {
  C result = v[0];
  for (int i = 1; i < kLanes<C>; ++i) {
    result = v[i] > result ? v[i] : result;
  }
  return result;
}

BINADE_INLINE Vector<float> sqrt(Vector<float> v) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector<float>>(_mm512_maskz_sqrt_ps(0xffff, reinterpret_cast<__m512>(v)));
#elif defined(__AVX2__)
  return reinterpret_cast<Vector<float>>(_mm256_sqrt_ps(reinterpret_cast<__m256>(v)));
#else
  return reinterpret_cast<Vector<float>>(_mm_sqrt_ps(reinterpret_cast<__m128>(v)));
#endif
}

BINADE_INLINE Vector<double> sqrt(Vector<double> v) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector<double>>(_mm512_maskz_sqrt_pd(0xff, reinterpret_cast<__m512d>(v)));
#elif defined(__AVX2__)
  return reinterpret_cast<Vector<double>>(_mm256_sqrt_pd(reinterpret_cast<__m256d>(v)));
#else
  return reinterpret_cast<Vector<double>>(_mm_sqrt_pd(reinterpret_cast<__m128d>(v)));
#endif
}

BINADE_INLINE float log(float x) { return __builtin_logf(x); }
BINADE_INLINE double log(double x) { return __builtin_log(x); }

// e^x to within 2 ulp, subnormal results included; infinities and NaN as by std::exp.
// x = n ln 2 + r with |r| <= ln(2) / 2; e^r by its series; 2^n in two factors, so that subnormal
// and overflowing results come out of the last multiplication.
BINADE_INLINE Vector<float> exp(Vector<float> x) {
  constexpr float kRound = 0x1.8p23f;  // adding it rounds to an integer in the low bits
  x = x < -104.0f ? broadcast(-104.0f) : x;
  x = x > 89.0f ? broadcast(89.0f) : x;
  const Vector<float> shifted = x * 0x1.715476p0f + kRound;
  const Vector<float> n = shifted - kRound;
  Vector<float> r = x - n * 0x1.62ep-1f;  // 12 bits of ln 2: n times it is exact
  r = r - n * 0x1.0bfbe8p-15f;            // the rest of ln 2
  Vector<float> q = r * (1 / 5040.0f) + 1 / 720.0f;
  q = q * r + 1 / 120.0f;
  q = q * r + 1 / 24.0f;
  q = q * r + 1 / 6.0f;
  q = q * r + 0.5f;
  q = q * (r * r) + r;
  q = q + 1.0f;
  const Mask<float> power = bits_as<Mask<float>>(shifted) - 0x4b400000;
  const Mask<float> first = power >> 1;
  const Mask<float> second = power - first;
  const Bits<float> first_bits = (bits_as<Bits<float>>(first) + 127u) << 23;
  const Bits<float> second_bits = (bits_as<Bits<float>>(second) + 127u) << 23;
  return q * bits_as<Vector<float>>(first_bits) * bits_as<Vector<float>>(second_bits);
}

// 2^kLift e^x for x <= 0: lifted, so that one factor scales it and what is subnormal in the end is
// rounded where the lift is taken off. For sums of exponentials, whose quotients it leaves alone.
template <class C>
inline constexpr C kLift = sizeof(C) == 4 ? C(0x1p40) : C(1);
BINADE_INLINE Vector<float> lifted_exp(Vector<float> x) {
  constexpr float kRound = 0x1.8p23f + 167;  // 127 + 40 in the last bits of a rounded sum
  x = x < -104.0f ? broadcast(-104.0f) : x;
  const Vector<float> shifted = x * 0x1.715476p0f + kRound;
  const Vector<float> n = shifted - kRound;
  Vector<float> r = x - n * 0x1.62ep-1f;
  r = r - n * 0x1.0bfbe8p-15f;
  Vector<float> q = r * 1.988352445e-4f + 1.392692661e-3f;
  q = q * r + 8.333320387e-3f;
  q = q * r + 4.166655011e-2f;
  q = q * r + 0.1666666667f;
  q = q * r + 0.5f;
  q = q * (r * r) + r;
  const Vector<float> scale = bits_as<Vector<float>>(bits_as<Bits<float>>(shifted) << 23);
  return q * scale + scale;
}

BINADE_INLINE Vector<double> exp(Vector<double> x) {
  constexpr double kRound = 0x1.8p52;
  x = x < -746.0 ? broadcast(-746.0) : x;
  x = x > 710.0 ? broadcast(710.0) : x;
  const Vector<double> shifted = x * 0x1.71547652b82fep0 + kRound;
  const Vector<double> n = shifted - kRound;
  Vector<double> r = x - n * 0x1.62e42feep-1;  // 32 bits of ln 2
  r = r - n * 0x1.a39ef35793c76p-33;
  Vector<double> q = r * (1 / 6227020800.0) + 1 / 479001600.0;
  constexpr double kSeries[] = {
      1 / 39916800.0, 1 / 3628800.0, 1 / 362880.0, 1 / 40320.0, 1 / 5040.0,
      1 / 720.0,      1 / 120.0,     1 / 24.0,     1 / 6.0,     0.5};
  for (double term : kSeries) {
    q = q * r + term;
  }
  q = q * (r * r) + r;
  q = q + 1.0;
  const Mask<double> power = bits_as<Mask<double>>(shifted) - 0x4338000000000000;
  const Mask<double> first = power >> 1;
  const Mask<double> second = power - first;
  const Bits<double> first_bits = (bits_as<Bits<double>>(first) + 1023u) << 52;
  const Bits<double> second_bits = (bits_as<Bits<double>>(second) + 1023u) << 52;
  return q * bits_as<Vector<double>>(first_bits) * bits_as<Vector<double>>(second_bits);
}

BINADE_INLINE Vector<double> lifted_exp(Vector<double> x) { return exp(x); }

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
