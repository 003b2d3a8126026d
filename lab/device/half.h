// __half and __nv_bfloat16 with the arithmetic of cuda_fp16.h and cuda_bf16.h: each operation
// computes in float and rounds once to 16 bits, as a GPU does. An operation that turns finite
// operands into infinity is noted with its line.
#pragma once
#include <binade/kernels/base/half.h>
#include <binade/lab/device/launch.h>

#include <math.h>  // float versions in the global namespace, as in device code

namespace binade::lab {

enum class Format : uint8_t { f16, bf16 };

template <Format kFormat>
struct Narrow;
template <Format kFormat>
BINADE_LAB_QUIET inline float widen(Narrow<kFormat> x);

template <Format kFormat>
inline uint16_t narrow_bits(float value) {
  if constexpr (kFormat == Format::f16) {
    const uint16_t bits = detail::half_bits(value);
    if (__builtin_expect((bits & 0x7fff) == 0x7c00 && !__builtin_isinf(value), 0)) {
      note_number(NumberEvent::f16_overflow, value);
    }
    return bits;
  } else {
    return detail::bfloat16_bits(value);
  }
}

template <Format kFormat>
struct Narrow {
  uint16_t bits;

  Narrow() = default;
  Narrow(float value) : bits(narrow_bits<kFormat>(value)) {}                               // NOLINT
  Narrow(double value) : bits(narrow_bits<kFormat>(static_cast<float>(value))) {}          // NOLINT
  Narrow(int value) : bits(narrow_bits<kFormat>(static_cast<float>(value))) {}             // NOLINT
  Narrow(unsigned value) : bits(narrow_bits<kFormat>(static_cast<float>(value))) {}        // NOLINT
  Narrow(short value) : bits(narrow_bits<kFormat>(static_cast<float>(value))) {}           // NOLINT
  Narrow(unsigned short value) : bits(narrow_bits<kFormat>(static_cast<float>(value))) {}  // NOLINT
  Narrow(long long value) : bits(narrow_bits<kFormat>(static_cast<float>(value))) {}       // NOLINT
  Narrow(unsigned long long value)
      : bits(narrow_bits<kFormat>(static_cast<float>(value))) {}  // NOLINT
  operator float() const {                                        // NOLINT
    if constexpr (kFormat == Format::f16) {
      return detail::half_value(bits);
    } else {
      return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    }
  }
  Narrow& operator+=(Narrow b) { return *this = Narrow(float(*this) + float(b)); }
  Narrow& operator-=(Narrow b) { return *this = Narrow(float(*this) - float(b)); }
  Narrow& operator*=(Narrow b) { return *this = Narrow(float(*this) * float(b)); }
  Narrow& operator/=(Narrow b) { return *this = Narrow(float(*this) / float(b)); }
  Narrow& operator++() { return *this += Narrow(1.0f); }
  Narrow& operator--() { return *this -= Narrow(1.0f); }
};

template <Format kFormat>
struct alignas(4) NarrowPair {
  Narrow<kFormat> x, y;

  NarrowPair() = default;
  NarrowPair(Narrow<kFormat> low, Narrow<kFormat> high) : x(low), y(high) {}
  NarrowPair& operator+=(NarrowPair b) { return *this = {x + b.x, y + b.y}; }
  NarrowPair& operator-=(NarrowPair b) { return *this = {x - b.x, y - b.y}; }
  NarrowPair& operator*=(NarrowPair b) { return *this = {x * b.x, y * b.y}; }
};

#define BINADE_LAB_NARROW(op)                                                            \
  template <Format kFormat>                                                              \
  inline Narrow<kFormat> operator op(Narrow<kFormat> a, Narrow<kFormat> b) {             \
    return Narrow<kFormat>(float(a) op float(b));                                        \
  }                                                                                      \
  template <Format kFormat>                                                              \
  inline NarrowPair<kFormat> operator op(NarrowPair<kFormat> a, NarrowPair<kFormat> b) { \
    return {a.x op b.x, a.y op b.y};                                                     \
  }
BINADE_LAB_NARROW(+)
BINADE_LAB_NARROW(-)
BINADE_LAB_NARROW(*)
BINADE_LAB_NARROW(/)
#undef BINADE_LAB_NARROW
#define BINADE_LAB_COMPARE(op)                                    \
  template <Format kFormat>                                       \
  inline bool operator op(Narrow<kFormat> a, Narrow<kFormat> b) { \
    return float(a) op float(b);                                  \
  }
BINADE_LAB_COMPARE(==)
BINADE_LAB_COMPARE(!=)
BINADE_LAB_COMPARE(<)
BINADE_LAB_COMPARE(>)
BINADE_LAB_COMPARE(<=)
BINADE_LAB_COMPARE(>=)
#undef BINADE_LAB_COMPARE
template <Format kFormat>
inline Narrow<kFormat> operator-(Narrow<kFormat> a) {
  return Narrow<kFormat>(-float(a));
}

}  // namespace binade::lab

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.
using __half = binade::lab::Narrow<binade::lab::Format::f16>;
using __half2 = binade::lab::NarrowPair<binade::lab::Format::f16>;
using __nv_bfloat16 = binade::lab::Narrow<binade::lab::Format::bf16>;
using __nv_bfloat162 = binade::lab::NarrowPair<binade::lab::Format::bf16>;
// NOLINTEND(readability-identifier-naming)
