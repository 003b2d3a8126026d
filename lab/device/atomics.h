// Atomic functions of CUDA C++ that the executor's primitives do not have.
#pragma once
#include <binade/lab/device/half.h>
#include <binade/lab/device/launch.h>

#include <bit>

namespace binade::lab {

template <size_t kBytes>
struct BitsOf;
template <>
struct BitsOf<2> {
  using Type = uint16_t;
};
template <>
struct BitsOf<4> {
  using Type = uint32_t;
};
template <>
struct BitsOf<8> {
  using Type = uint64_t;
};

template <class T>
uint64_t to_bits(T value) {
  return std::bit_cast<typename BitsOf<sizeof(T)>::Type>(value);
}
template <class T>
T from_bits(uint64_t bits) {
  return std::bit_cast<T>(static_cast<typename BitsOf<sizeof(T)>::Type>(bits));
}

// Replaces *p by F()(*p, a, b).
template <class F, class T>
BINADE_LAB_QUIET T atomic_of(T* p, T a, T b, kernels::host::Site site) {
  const AtomicStep step = [](uint64_t old, uint64_t x, uint64_t y) {
    return to_bits(static_cast<T>(F()(from_bits<T>(old), from_bits<T>(x), from_bits<T>(y))));
  };
  return from_bits<T>(atomic_apply(const_cast<std::remove_cv_t<T>*>(p), sizeof(T),
                                   {step, to_bits(a), to_bits(b)}, site));
}

}  // namespace binade::lab

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.
#define BINADE_LAB_ATOMIC(name, expression)                                        \
  namespace binade::lab {                                                          \
  struct name##Step {                                                              \
    template <class T>                                                             \
    T operator()(T old, T value, T) const {                                        \
      return static_cast<T>(expression);                                           \
    }                                                                              \
  };                                                                               \
  }                                                                                \
  template <class T>                                                               \
  inline T name(T* p, std::type_identity_t<T> value, BINADE_SITE) {                \
    return binade::lab::atomic_of<binade::lab::name##Step>(p, value, value, site); \
  }                                                                                \
  template <class T>                                                               \
  inline T name##_block(T* p, std::type_identity_t<T> value, BINADE_SITE) {        \
    return binade::lab::atomic_of<binade::lab::name##Step>(p, value, value, site); \
  }                                                                                \
  template <class T>                                                               \
  inline T name##_system(T* p, std::type_identity_t<T> value, BINADE_SITE) {       \
    return binade::lab::atomic_of<binade::lab::name##Step>(p, value, value, site); \
  }

namespace binade::lab {
// Sums of integers wrap around, as on a GPU.
template <class T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}
template <class T>
T wrapping_difference(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) - static_cast<Unsigned>(b));
  } else {
    return a - b;
  }
}
}  // namespace binade::lab

#define atomicAdd binade_lab_atomicAdd
#define atomicMax binade_lab_atomicMax
#define atomicOr binade_lab_atomicOr
BINADE_LAB_ATOMIC(binade_lab_atomicAdd, wrapping_sum(old, value))
BINADE_LAB_ATOMIC(atomicSub, wrapping_difference(old, value))
BINADE_LAB_ATOMIC(binade_lab_atomicMax, old < value ? value : old)
BINADE_LAB_ATOMIC(atomicMin, value < old ? value : old)
BINADE_LAB_ATOMIC(atomicAnd, old& value)
BINADE_LAB_ATOMIC(binade_lab_atomicOr, old | value)
BINADE_LAB_ATOMIC(atomicXor, old ^ value)
BINADE_LAB_ATOMIC(atomicExch, value)
BINADE_LAB_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
BINADE_LAB_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef BINADE_LAB_ATOMIC
#define atomicAdd_block binade_lab_atomicAdd_block
#define atomicAdd_system binade_lab_atomicAdd_system
#define atomicMax_block binade_lab_atomicMax_block
#define atomicMax_system binade_lab_atomicMax_system
#define atomicOr_block binade_lab_atomicOr_block
#define atomicOr_system binade_lab_atomicOr_system

namespace binade::lab {
struct CompareAndSwapStep {
  template <class T>
  T operator()(T old, T expected, T desired) const {
    return to_bits(old) == to_bits(expected) ? desired : old;
  }
};
}  // namespace binade::lab
#define atomicCAS binade_lab_atomicCAS
template <class T>
inline T binade_lab_atomicCAS(T* p, std::type_identity_t<T> expected,
                              std::type_identity_t<T> desired, BINADE_SITE) {
  return binade::lab::atomic_of<binade::lab::CompareAndSwapStep>(p, expected, desired, site);
}
// NOLINTEND(readability-identifier-naming)
