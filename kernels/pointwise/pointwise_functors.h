// One functor per pointwise operation of one input: the function and, beside it, its gradient. T is
// the compute type. forward(x, alpha, beta) and backward(saved, dy, alpha, beta), where `saved` is
// x or y as the list in kernels/pointwise/pointwise.h says. Two inputs: binary_functors.h.
//
// Gradients at infinity are the limits. Gradients at kinks: abs, sign, relu 0 at 0; leaky_relu and
// elu their left slope at 0; hardtanh 0 and clamp 1 at both bounds; floor, ceil, round and trunc 0
// everywhere.
#pragma once
#include <binade/kernels/base/pointwise_math.h>

namespace binade::kernels {
namespace {
namespace functor {

#define BINADE_FORWARD                                                       \
  template <class T>                                                         \
  BINADE_HD static T forward([[maybe_unused]] T x, [[maybe_unused]] T alpha, \
                             [[maybe_unused]] T beta)
// The gradient, computed from the input x or from the output y.
#define BINADE_BACKWARD_X                                                           \
  template <class T>                                                                \
  BINADE_HD static T backward([[maybe_unused]] T x, T dy, [[maybe_unused]] T alpha, \
                              [[maybe_unused]] T beta)
#define BINADE_BACKWARD_Y                                                           \
  template <class T>                                                                \
  BINADE_HD static T backward([[maybe_unused]] T y, T dy, [[maybe_unused]] T alpha, \
                              [[maybe_unused]] T beta)

struct Neg {
  BINADE_FORWARD { return -x; }
  BINADE_BACKWARD_X { return -dy; }
};

struct Abs {
  BINADE_FORWARD { return x < T(0) ? -x : x + T(0); }
  BINADE_BACKWARD_X { return x > T(0) ? dy : x < T(0) ? -dy : T(0); }
};

struct Square {
  BINADE_FORWARD { return x * x; }
  BINADE_BACKWARD_X { return T(2) * x * dy; }
};

struct Sqrt {
  BINADE_FORWARD { return math_sqrt(x); }
  BINADE_BACKWARD_Y { return dy / (T(2) * y); }
};

struct Rsqrt {
  BINADE_FORWARD { return T(1) / math_sqrt(x); }
  BINADE_BACKWARD_Y { return T(-0.5) * dy * y * y * y; }
};

struct Reciprocal {
  BINADE_FORWARD { return T(1) / x; }
  BINADE_BACKWARD_Y { return -dy * y * y; }
};

struct Exp {
  BINADE_FORWARD { return math_exp(x); }
  BINADE_BACKWARD_Y { return dy * y; }
};

struct Log {
  BINADE_FORWARD { return math_log(x); }
  BINADE_BACKWARD_X { return dy / x; }
};

struct Sin {
  BINADE_FORWARD { return math_sin(x); }
  BINADE_BACKWARD_X { return dy * math_cos(x); }
};

struct Cos {
  BINADE_FORWARD { return math_cos(x); }
  BINADE_BACKWARD_X { return -dy * math_sin(x); }
};

struct Tanh {
  BINADE_FORWARD { return math_tanh(x); }
  BINADE_BACKWARD_Y { return dy * (T(1) - y * y); }
};

struct Sigmoid {
  BINADE_FORWARD { return math_sigmoid(x); }
  BINADE_BACKWARD_Y { return dy * (T(1) - y) * y; }
};

struct Relu {
  BINADE_FORWARD { return x < T(0) ? T(0) : x; }  // keeps NaN
  BINADE_BACKWARD_Y { return y <= T(0) ? T(0) : dy; }
};

struct LeakyRelu {
  BINADE_FORWARD { return x > T(0) ? x : alpha * x; }
  BINADE_BACKWARD_X { return x > T(0) ? dy : alpha * dy; }
};

struct Gelu {
  BINADE_FORWARD { return math_gelu(x); }
  BINADE_BACKWARD_X { return dy * math_gelu_slope(x); }
};

struct GeluTanh {
  BINADE_FORWARD { return math_gelu_tanh(x); }
  BINADE_BACKWARD_X { return dy * math_gelu_tanh_slope(x); }
};

struct Silu {
  BINADE_FORWARD { return x * math_sigmoid(x); }
  BINADE_BACKWARD_X {
    const T z = math_up_to(T(1000), x), s = math_sigmoid(z);
    return dy * s * (T(1) + z * math_sigmoid_rest(z, s));
  }
};

struct Softplus {
  BINADE_FORWARD {
    const T smooth = math_softplus(alpha * x) / alpha;
    return alpha * x > beta ? x : smooth;
  }
  BINADE_BACKWARD_X {
    const T slope = math_sigmoid(alpha * x);
    return alpha * x > beta ? dy : dy * slope;
  }
};

struct Elu {
  BINADE_FORWARD {
    const T below = alpha * math_expm1(x);
    return x > T(0) ? x : below;
  }
  BINADE_BACKWARD_X {
    const T below = alpha * math_exp(x);
    return x > T(0) ? dy : dy * below;
  }
};

struct Clamp {
  BINADE_FORWARD {
    const T raised = x < alpha ? alpha : x;
    return raised > beta ? beta : raised;
  }
  BINADE_BACKWARD_X { return (x >= alpha) & (x <= beta) ? dy : T(0); }
};

struct AddScalar {
  BINADE_FORWARD { return x + alpha; }
  BINADE_BACKWARD_X { return dy; }
};

struct RsubScalar {
  BINADE_FORWARD { return alpha - x; }
  BINADE_BACKWARD_X { return -dy; }
};

struct MulScalar {
  BINADE_FORWARD { return x * alpha; }
  BINADE_BACKWARD_X { return dy * alpha; }
};

struct DivScalar {
  BINADE_FORWARD { return x / alpha; }
  BINADE_BACKWARD_X { return dy / alpha; }
};

struct RdivScalar {
  BINADE_FORWARD { return alpha / x; }
  BINADE_BACKWARD_X { return -dy * (alpha / x / x); }
};

struct PowScalar {
  BINADE_FORWARD { return math_pow(x, alpha); }
  BINADE_BACKWARD_X { return alpha == T(0) ? T(0) : dy * (alpha * math_pow(x, alpha - T(1))); }
};

struct Expm1 {
  BINADE_FORWARD { return math_expm1(x); }
  BINADE_BACKWARD_Y { return dy * (y + T(1)); }
};

struct Log1p {
  BINADE_FORWARD { return math_log1p(x); }
  BINADE_BACKWARD_X { return dy / (x + T(1)); }
};

struct Sign {
  BINADE_FORWARD { return x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0); }
  BINADE_BACKWARD_X {
    static_cast<void>(dy);
    return T(0);
  }
};

// The gradient of a step function.
#define BINADE_BACKWARD_NONE \
  BINADE_BACKWARD_X {        \
    static_cast<void>(dy);   \
    return T(0);             \
  }

struct Floor {
  BINADE_FORWARD { return BINADE_LIBM(T, floor, x); }
  BINADE_BACKWARD_NONE
};

struct Ceil {
  BINADE_FORWARD { return BINADE_LIBM(T, ceil, x); }
  BINADE_BACKWARD_NONE
};

struct Round {  // half to even
  BINADE_FORWARD { return BINADE_LIBM(T, rint, x); }
  BINADE_BACKWARD_NONE
};

struct Trunc {
  BINADE_FORWARD { return BINADE_LIBM(T, trunc, x); }
  BINADE_BACKWARD_NONE
};

struct Frac {
  BINADE_FORWARD { return x - BINADE_LIBM(T, trunc, x); }
  BINADE_BACKWARD_X { return dy; }
};
#undef BINADE_BACKWARD_NONE

struct Tan {
  BINADE_FORWARD { return math_sin(x) / math_cos(x); }
  BINADE_BACKWARD_Y { return dy * (T(1) + y * y); }
};

struct Asin {
  BINADE_FORWARD { return BINADE_LIBM(T, asin, x); }
  BINADE_BACKWARD_X { return dy / math_sqrt((T(1) - x) * (T(1) + x)); }
};

struct Acos {
  BINADE_FORWARD { return BINADE_LIBM(T, acos, x); }
  BINADE_BACKWARD_X { return -dy / math_sqrt((T(1) - x) * (T(1) + x)); }
};

struct Atan {
  BINADE_FORWARD { return BINADE_LIBM(T, atan, x); }
  BINADE_BACKWARD_X { return dy / (T(1) + x * x); }
};

struct Sinh {
  BINADE_FORWARD { return BINADE_LIBM(T, sinh, x); }
  BINADE_BACKWARD_X { return dy * BINADE_LIBM(T, cosh, x); }
};

struct Cosh {
  BINADE_FORWARD { return BINADE_LIBM(T, cosh, x); }
  BINADE_BACKWARD_X { return dy * BINADE_LIBM(T, sinh, x); }
};

struct Hardtanh {
  BINADE_FORWARD { return Clamp::forward(x, alpha, beta); }
  BINADE_BACKWARD_X { return (x <= alpha) | (x >= beta) ? T(0) : dy; }  // NaN: dy
};

struct Erf {
  BINADE_FORWARD { return math_erf(x); }
  BINADE_BACKWARD_X { return dy * (T(1.1283791670955125739) * math_exp(-x * x)); }
};

struct Hardswish {
  // The product comes last: it must not overflow.
  BINADE_FORWARD { return x * (Clamp::forward(x + T(3), T(0), T(6)) / T(6)); }
  BINADE_BACKWARD_X {
    const T between = dy * (x / T(3) + T(0.5));
    return x <= T(-3) ? T(0) : x >= T(3) ? dy : between;
  }
};

// x tanh(softplus(x)): with e = exp(x) and m = e (e + 2) the tanh is m / (m + 2).
struct Mish {
  BINADE_FORWARD {
    const T e = math_exp(x > T(20) ? T(20) : x), m = e * (e + T(2));  // from 20 on the tanh is 1
    return x * (m / (m + T(2)));
  }
  BINADE_BACKWARD_X {
    // For x >= 40 the slope is 1; e^2 must not overflow.
    const T z = x > T(40) ? T(40) : math_up_to(T(1000), x);
    const T e = math_exp(z), m = e * (e + T(2)), t = m / (m + T(2));
    const T ratio = T(2) * (T(1) + e) / (m + T(2));  // its square is 1 - t^2
    return dy * (t + z * (e / (T(1) + e)) * ratio * ratio);
  }
};

struct LogSigmoid {
  BINADE_FORWARD { return -math_softplus(-x); }
  BINADE_BACKWARD_X { return dy * math_sigmoid(-x); }
};

struct Selu {
  static constexpr double kScale = 1.0507009873554804934, kAlpha = 1.6732632423543772848;
  BINADE_FORWARD { return T(kScale) * Elu::forward(x, T(kAlpha), beta); }
  BINADE_BACKWARD_X { return T(kScale) * Elu::backward(x, dy, T(kAlpha), beta); }
};

struct Celu {
  static constexpr const char* kTakes = "a number other than 0";
  static bool takes(double alpha) { return static_cast<float>(alpha) != 0; }
  BINADE_FORWARD {
    const T below = alpha * math_expm1(x / alpha);
    return x > T(0) ? x : below;
  }
  BINADE_BACKWARD_X {
    const T below = math_exp(x / alpha);
    return x > T(0) ? dy : dy * below;
  }
};

struct Softsign {
  BINADE_FORWARD { return x / (T(1) + Abs::forward(x, alpha, beta)); }
  BINADE_BACKWARD_X {
    const T width = T(1) + Abs::forward(x, alpha, beta);
    return dy / width / width;  // its square may overflow
  }
};

struct Hardsigmoid {
  BINADE_FORWARD { return Clamp::forward(x + T(3), T(0), T(6)) / T(6); }
  BINADE_BACKWARD_X { return (x > T(-3)) & (x < T(3)) ? dy / T(6) : T(0); }
};

struct Exp2 {
  BINADE_FORWARD { return BINADE_LIBM(T, exp2, x); }
  BINADE_BACKWARD_Y { return dy * (y * T(0.69314718055994530942)); }
};

struct Log2 {
  BINADE_FORWARD { return BINADE_LIBM(T, log2, x); }
  BINADE_BACKWARD_X { return dy / (x * T(0.69314718055994530942)); }
};

#undef BINADE_FORWARD
#undef BINADE_BACKWARD_X
#undef BINADE_BACKWARD_Y

}  // namespace functor
}  // namespace
}  // namespace binade::kernels
