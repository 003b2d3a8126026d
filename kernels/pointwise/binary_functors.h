// One functor per pointwise operation of two inputs: the function and, beside it, its gradients, as
// pointwise_functors.h has them for one input: forward(a, b), backward_a(a, b, dy) and
// backward_b(a, b, dy). Gradients at ties: maximum and minimum half to each.
#pragma once
#include <binade/kernels/base/pointwise_math.h>

namespace binade::kernels {
namespace {
namespace functor {

// Integers wrap around: they are computed as unsigned.
template <class T>
struct Wrapping {
  using type = T;
};
template <>
struct Wrapping<int64_t> {
  using type = uint64_t;
};
template <>
struct Wrapping<int32_t> {
  using type = uint32_t;
};

#define BINADE_FORWARD \
  template <class T>   \
  BINADE_HD static T forward(T a, T b)
#define BINADE_BACKWARD_A \
  template <class T>      \
  BINADE_HD static T backward_a([[maybe_unused]] T a, [[maybe_unused]] T b, T dy)
#define BINADE_BACKWARD_B \
  template <class T>      \
  BINADE_HD static T backward_b([[maybe_unused]] T a, [[maybe_unused]] T b, T dy)

struct Add {
  BINADE_FORWARD {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  }
  BINADE_BACKWARD_A { return dy; }
  BINADE_BACKWARD_B { return dy; }
};

struct Sub {
  BINADE_FORWARD {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(a) - static_cast<W>(b));
  }
  BINADE_BACKWARD_A { return dy; }
  BINADE_BACKWARD_B { return -dy; }
};

struct Mul {
  BINADE_FORWARD {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  }
  BINADE_BACKWARD_A { return dy * b; }
  BINADE_BACKWARD_B { return dy * a; }
};

struct Div {
  BINADE_FORWARD { return a / b; }
  BINADE_BACKWARD_A { return dy / b; }
  BINADE_BACKWARD_B { return -dy * (a / b / b); }
};

// Division with rounding. A quotient of integers has no exceptions: by 0 quotient and rest are 0,
// and the lowest number over -1 wraps to itself.
template <class T>
inline constexpr bool kIsInteger = T(1) / T(2) == T(0);

// Toward zero, as in C, and the rest, which has the sign of a.
template <class T>
BINADE_HD T integer_quotient(T a, T b) {
  const bool negates = (T(-1) < T(0)) & (b == T(-1));
  return b == T(0) ? T(0) : negates ? Sub::forward(T(0), a) : static_cast<T>(a / b);
}
template <class T>
BINADE_HD T integer_rest(T a, T b) {
  const bool negates = (T(-1) < T(0)) & (b == T(-1));
  return (b == T(0)) | negates ? T(0) : static_cast<T>(a % b);
}

struct FloorDivide {
  BINADE_FORWARD {
    if constexpr (kIsInteger<T>) {
      const T rest = integer_rest(a, b);
      const bool above = (rest != T(0)) & ((rest ^ b) < 0);  // toward zero was up
      return static_cast<T>(integer_quotient(a, b) - (above ? 1 : 0));
    } else {
      // From the exact rest: floor(a / b) would be off by one where a / b rounds to a whole number.
      const T rest = BINADE_LIBM(T, fmod, a, b);
      const T below = (rest != T(0)) & ((rest < T(0)) != (b < T(0))) ? T(1) : T(0);
      const T quotient = (a - rest) / b - below, whole = BINADE_LIBM(T, floor, quotient);
      const T nearest = quotient - whole > T(0.5) ? whole + T(1) : whole;
      const T signed_zero = BINADE_LIBM(T, copysign, T(0), a / b);
      return b == T(0) ? a / b : quotient == T(0) ? signed_zero : nearest;
    }
  }
  BINADE_BACKWARD_A {
    static_cast<void>(dy);
    return T(0);
  }
  BINADE_BACKWARD_B {
    static_cast<void>(dy);
    return T(0);
  }
};

struct Remainder {  // a - b floor(a / b), with the sign of b
  BINADE_FORWARD {
    if constexpr (kIsInteger<T>) {
      const T rest = integer_rest(a, b);
      return (rest != T(0)) & ((rest ^ b) < 0) ? static_cast<T>(rest + b) : rest;
    } else {
      const T rest = BINADE_LIBM(T, fmod, a, b);
      return (rest != T(0)) & ((rest < T(0)) != (b < T(0))) ? rest + b : rest;
    }
  }
  BINADE_BACKWARD_A { return dy; }
  BINADE_BACKWARD_B { return -dy * FloorDivide::forward(a, b); }
};

struct Fmod {  // a - b trunc(a / b), with the sign of a
  BINADE_FORWARD {
    if constexpr (kIsInteger<T>) {
      return integer_rest(a, b);
    } else {
      return BINADE_LIBM(T, fmod, a, b);
    }
  }
  BINADE_BACKWARD_A { return dy; }
  BINADE_BACKWARD_B { return -dy * BINADE_LIBM(T, trunc, a / b); }
};

struct Maximum {
  BINADE_FORWARD { return (a > b) | (a != a) ? a : b; }  // NaN wins
  BINADE_BACKWARD_A { return a < b ? T(0) : a == b ? dy * T(0.5) : dy; }
  BINADE_BACKWARD_B { return a > b ? T(0) : a == b ? dy * T(0.5) : dy; }
};

struct Minimum {
  BINADE_FORWARD { return (a < b) | (a != a) ? a : b; }
  BINADE_BACKWARD_A { return a > b ? T(0) : a == b ? dy * T(0.5) : dy; }
  BINADE_BACKWARD_B { return a < b ? T(0) : a == b ? dy * T(0.5) : dy; }
};

// a^b for integers by repeated squaring; it wraps around. REQUIRES: b >= 0.
template <class T>
BINADE_HD T integer_power(T a, T b) {
  T power = 1;
  for (auto rest = static_cast<typename Wrapping<T>::type>(b); rest != 0; rest >>= 1) {
    power = rest & 1 ? Mul::forward(power, a) : power;
    a = Mul::forward(a, a);
  }
  return power;
}

struct Pow {
  BINADE_FORWARD {
    if constexpr (kIsInteger<T>) {
      return integer_power(a, b);
    } else {
      return math_pow(a, b);
    }
  }
  BINADE_BACKWARD_A { return b == T(0) ? T(0) : dy * (b * math_pow(a, b - T(1))); }
  BINADE_BACKWARD_B {
    return (a == T(0)) & (b >= T(0)) ? T(0) : dy * (math_pow(a, b) * math_log(a));
  }
};

struct Atan2 {
  BINADE_FORWARD { return BINADE_LIBM(T, atan2, a, b); }
  // Divides twice by the hypotenuse, since its square could overflow or underflow. 0 at the origin,
  // as in PyTorch.
  BINADE_BACKWARD_A {
    const T h = BINADE_LIBM(T, hypot, a, b);
    return h == T(0) ? T(0) : dy * (b / h / h);
  }
  BINADE_BACKWARD_B {
    const T h = BINADE_LIBM(T, hypot, a, b);
    return h == T(0) ? T(0) : dy * (-a / h / h);
  }
};

struct Logaddexp {
  BINADE_FORWARD {
    const T larger = a > b ? a : b, difference = a > b ? b - a : a - b;
    const T sum = larger + math_log1p_unit(math_exp(difference));
    return a == b ? a + T(0.69314718055994530942) : sum;  // equal infinities have no difference
  }
  BINADE_BACKWARD_A { return dy * math_sigmoid(a - b); }
  BINADE_BACKWARD_B { return dy * math_sigmoid(b - a); }
};

#undef BINADE_FORWARD
#undef BINADE_BACKWARD_A
#undef BINADE_BACKWARD_B

}  // namespace functor
}  // namespace
}  // namespace binade::kernels
