// Vectors of one register for *_isa.cpp files: loads and stores of all or the first lanes, for
// every floating dtype, converted to and from the compute type. Part of
// kernels/base/vector_math_internal.h.
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
  return value - Vector<C>{};  // a subtraction keeps -0
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

// Loads one vector from p, which may be unaligned.
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

// Loads the first n < kLanes elements; the other lanes are `fill`. Uses masks where the instruction
// set has them, because a copy of n bytes would be a function call.
template <class T>
BINADE_INLINE Vector<Compute<T>> load_part(const T* p, int64_t n, Compute<T> fill = 0) {
  using C = Compute<T>;
  using Signed = decltype(Mask<C>{}[0] + 0);
  [[maybe_unused]] const Mask<C> present = lane_numbers<C>() < static_cast<Signed>(n);
#if defined(__AVX512F__)
  const auto mask = static_cast<uint16_t>((1u << n) - 1u);
  if constexpr (sizeof(T) == 4) {
    return bits_as<Vector<C>>(_mm512_mask_loadu_ps(bits_as<__m512>(broadcast<C>(fill)), mask, p));
  } else if constexpr (sizeof(T) == 8) {
    return bits_as<Vector<C>>(
        _mm512_mask_loadu_pd(bits_as<__m512d>(broadcast<C>(fill)), static_cast<__mmask8>(mask), p));
  } else {
    const HalfBits h = bits_as<HalfBits>(_mm256_maskz_loadu_epi16(mask, p));
    const Vector<C> v = dtype_of<T> == DType::f16 ? widen_half(h) : widen_bfloat16(h);
    return present ? v : broadcast<C>(fill);
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) {
    const auto v = bits_as<Vector<C>>(_mm256_maskload_ps(p, bits_as<__m256i>(present)));
    return present ? v : broadcast<C>(fill);
  } else if constexpr (sizeof(T) == 8) {
    const auto v = bits_as<Vector<C>>(_mm256_maskload_pd(p, bits_as<__m256i>(present)));
    return present ? v : broadcast<C>(fill);
  }
#endif
  alignas(kVectorBytes) unsigned char buffer[kLanes<C> * sizeof(T)] = {};
  __builtin_memcpy(buffer, p, static_cast<size_t>(n) * sizeof(T));
  const Vector<C> v = load(reinterpret_cast<const T*>(buffer));
  return present ? v : broadcast<C>(fill);
}

template <class T>
BINADE_INLINE void store_part(T* p, Vector<Compute<T>> v, int64_t n) {
#if defined(__AVX512F__)
  const auto mask = static_cast<uint16_t>((1u << n) - 1u);
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_ps(p, mask, bits_as<__m512>(v));
  } else if constexpr (sizeof(T) == 8) {
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>(mask), bits_as<__m512d>(v));
  } else {
    const HalfBits h = dtype_of<T> == DType::f16 ? narrow_half(v) : narrow_bfloat16(v);
    _mm256_mask_storeu_epi16(p, mask, bits_as<__m256i>(h));
  }
#else
  alignas(kVectorBytes) unsigned char buffer[kLanes<Compute<T>> * sizeof(T)];
  store(reinterpret_cast<T*>(buffer), v);
  if constexpr (sizeof(T) == 4 && kVectorBytes == 32) {  // in halves: a masked store may be slow
    const unsigned char* from = buffer;
    auto* to = reinterpret_cast<unsigned char*>(p);
    for (int64_t part = 4; part > 0; part /= 2) {
      if (n & part) {
        __builtin_memcpy(to, from, static_cast<size_t>(part) * sizeof(T));
        to += part * int64_t{sizeof(T)};
        from += part * int64_t{sizeof(T)};
      }
    }
    return;
  }
  __builtin_memcpy(static_cast<void*>(p), buffer, static_cast<size_t>(n) * sizeof(T));
#endif
}

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
