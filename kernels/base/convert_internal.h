// Converts one value between dtypes, by the rules of kernels/copy/copy.h, on the host and on the
// device. In an anonymous namespace because each instruction set compiles its own copy
// (kernels/base/isa.h).
#pragma once
#include <binade/kernels/base/dtype.h>

#include <type_traits>

namespace binade::kernels {
namespace {

// Truncates toward zero. Values out of range saturate, NaN gives 0.
template <class D, class C>
BINADE_HD inline D truncated(C x, C low, C above, D least, D greatest) {
  return x < above ? (x >= low ? static_cast<D>(x) : least) : (x == x ? greatest : D(0));
}

// Converts to D from C, which is double, float, or an integer (bool is read as uint8_t).
template <class D, class C>
BINADE_HD inline D converted(C x) {
  constexpr bool kFloating = std::is_floating_point_v<C>;
  if constexpr (std::is_same_v<D, bool>) {
    return x != C(0);
  } else if constexpr (std::is_same_v<D, half> || std::is_same_v<D, bfloat16>) {
    if constexpr (std::is_same_v<C, float>) {
      return D(x);
    } else {
      return D(static_cast<double>(x));
    }
  } else if constexpr (kFloating && std::is_same_v<D, int64_t>) {
    return truncated<D>(x, C(-0x1p63), C(0x1p63), INT64_MIN, INT64_MAX);
  } else if constexpr (kFloating && std::is_same_v<D, int32_t>) {
    // Truncates before comparing: -2^31 - 0.5 is in range.
    return truncated<D>(x, C(-0x1p31), C(0x1p31), INT32_MIN, INT32_MAX);
  } else if constexpr (kFloating && std::is_same_v<D, uint8_t>) {
    return truncated<D>(x, C(0), C(256), uint8_t(0), uint8_t(255));
  } else {
    return static_cast<D>(x);
  }
}

}  // namespace
}  // namespace binade::kernels
