// Vectors of one register for *_isa.cpp files: loads and stores
// (kernels/base/vector_memory_internal.h), exp, and reductions over lanes. Include only from
// *_isa.cpp; all names have internal linkage, so that no build for one instruction set can leak
// into another.
#pragma once
#include <binade/kernels/base/vector_memory_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// Stores past the caches (base/strided.h, kNontemporalBytes). p must be aligned to the bytes of the
// store; nontemporal_fence() makes the stores visible to other threads.
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
BINADE_INLINE void nontemporal_fence() { _mm_sfence(); }

// True if rows of `cols` elements, `stride` apart, consist of whole aligned vectors, as
// store_nontemporal() needs.
template <class T>
BINADE_INLINE bool fits_nontemporal(const T* p, int64_t stride, int64_t cols) {
  return sizeof(T) > 2 && reinterpret_cast<uintptr_t>(p) % kVectorBytes == 0 &&
         stride % kLanes<T> == 0 && cols % kLanes<T> == 0;
}

// Loads or stores a whole vector or its first n elements; the choice is made at compile time.
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

// Calls f(part, i, n) for i = 0, kLanes, ... below size, with the n elements from i. part() is a
// compile-time constant, true for an incomplete last vector.
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

// for_vectors with f(part, way, i, n). way() cycles through 0 .. kWays - 1 at compile time: sums go
// to kWays accumulators, so that their additions overlap.
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

// Calls f(begin, count) for blocks of a row. A sum is in the compute type over a block, and in
// double over the blocks: a million equal floats added one by one would lose three digits.
inline constexpr int64_t kSumBlock = 4096;
template <class F>
BINADE_INLINE void for_blocks(int64_t count, F&& f) {
  for (int64_t begin = 0; begin < count; begin += kSumBlock) {
    f(begin, begin + kSumBlock < count ? kSumBlock : count - begin);
  }
}

// The sum of f(begin, count) over the blocks of a row.
template <class C, class F>
BINADE_INLINE C sum_of_blocks(int64_t count, F&& f) {
  double sum = 0;
  for_blocks(count,
             [&](int64_t begin, int64_t size) { sum += static_cast<double>(f(begin, size)); });
  return static_cast<C>(sum);
}

// Prefetches the line that holds p, for the next row. Any address will do.
BINADE_INLINE void prefetch(const void* p) { __builtin_prefetch(p); }

template <class C>
BINADE_INLINE Vector<C> max(Vector<C> a, Vector<C> b) {
  return a > b ? a : b;
}

// Reduces over all lanes by halves: lane i with lane i + n / 2, and so on.
template <class V, class F>
BINADE_INLINE auto fold_halves(V v, F combine) {
  typedef decltype(v[0] + 0) Element;
  if constexpr (sizeof(V) <= 16) {
    constexpr int kCount = sizeof(V) / sizeof(Element);
    Element lanes[kCount];
    for (int i = 0; i < kCount; ++i) {
      lanes[i] = v[i];
    }
    for (int width = kCount / 2; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) {
        lanes[i] = combine(lanes[i], lanes[i + width]);
      }
    }
    return lanes[0];
  } else {
    typedef Element Half __attribute__((vector_size(sizeof(V) / 2)));
    Half low, high;
    __builtin_memcpy(&low, &v, sizeof low);
    __builtin_memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof low, sizeof high);
    return fold_halves(combine(low, high), combine);
  }
}

template <class C>
BINADE_INLINE C reduce_add(Vector<C> v) {
  return fold_halves(v, [](auto a, auto b) { return a + b; });
}

template <class C>
BINADE_INLINE C reduce_add(const Vector<C> (&sums)[kWays]) {
  return reduce_add<C>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// If v holds a NaN, the result is NaN or the maximum of only some of the other elements.
template <class C>
BINADE_INLINE C reduce_max(Vector<C> v) {
  return fold_halves(v, [](auto a, auto b) { return b > a ? b : a; });
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

// e^x to within 2 ulp, subnormal results included; infinities and NaN as by std::exp. x = n ln 2 +
// r with |r| <= ln(2) / 2; e^r by its series. 2^n is applied as two factors, so that only the last
// multiplication can underflow or overflow.
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

// 2^kLift e^x for x <= 0. Multiply by 2^-kLift to remove the factor: only then is a subnormal
// result rounded. Sums of exponentials can keep it, since it cancels in their quotients.
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
