// One functor per pointwise loss of input x and target t: its value and its derivatives with
// respect to x and to t. p is pos_weight. The derivative of l1 at 0 is 0.
#pragma once
#include <binade/kernels/base/pointwise_math.h>

namespace binade::kernels {
namespace {
namespace loss {

#define BINADE_LOSS(name)                                                                   \
  template <class T>                                                                        \
  BINADE_HD static T name([[maybe_unused]] T x, [[maybe_unused]] T t, [[maybe_unused]] T p, \
                          [[maybe_unused]] T alpha)

template <class T>
BINADE_HD inline T magnitude(T d) {
  return d < T(0) ? -d : d;
}
template <class T>
BINADE_HD inline T sign(T d) {
  return d > T(0) ? T(1) : d < T(0) ? T(-1) : d;  // keeps NaN
}

struct Mse {
  BINADE_LOSS(value) { return (x - t) * (x - t); }
  BINADE_LOSS(dx) { return T(2) * (x - t); }
  BINADE_LOSS(dt) { return T(2) * (t - x); }
};

struct L1 {
  BINADE_LOSS(value) { return magnitude(x - t); }
  BINADE_LOSS(dx) { return sign(x - t); }
  BINADE_LOSS(dt) { return sign(t - x); }
};

struct SmoothL1 {
  BINADE_LOSS(value) {
    const T d = magnitude(x - t), near = T(0.5) * d * d / alpha;
    return d < alpha ? near : d - T(0.5) * alpha;
  }
  BINADE_LOSS(dx) {
    const T d = x - t, near = d / alpha;
    return magnitude(d) < alpha ? near : sign(d);
  }
  BINADE_LOSS(dt) { return -dx(x, t, p, alpha); }
};

struct Huber {
  BINADE_LOSS(value) {
    const T d = magnitude(x - t), far = alpha * (d - T(0.5) * alpha);
    return d <= alpha ? T(0.5) * d * d : far;
  }
  BINADE_LOSS(dx) {
    const T d = x - t;
    return d > alpha ? alpha : d < -alpha ? -alpha : d;
  }
  BINADE_LOSS(dt) { return -dx(x, t, p, alpha); }
};

struct Bce {
  template <class T>
  BINADE_HD static T limited(T log_value) {
    return log_value < T(-100) ? T(-100) : log_value;
  }
  BINADE_LOSS(value) {
    const T loss = (t - T(1)) * limited(math_log1p(-x)) - t * limited(math_log(x));
    return (x < T(0)) | (x > T(1)) ? T(__builtin_nanf("")) : loss;
  }
  BINADE_LOSS(dx) {
    const T spread = (T(1) - x) * x;
    return (x - t) / (spread < T(1e-12) ? T(1e-12) : spread);
  }
  BINADE_LOSS(dt) { return limited(math_log1p(-x)) - limited(math_log(x)); }
};

// With s the sigmoid: -(p t log s(x) + (1 - t) log s(-x)), where -log s(-x) = softplus(x).
struct BceWithLogits {
  BINADE_LOSS(value) {
    const T small = math_log1p_unit(math_exp(-magnitude(x)));
    const T up = (x > T(0) ? x : T(0)) + small, down = (x < T(0) ? -x : T(0)) + small;
    return (T(1) - t) * up + p * t * down;
  }
  BINADE_LOSS(dx) { return (T(1) - t) * math_sigmoid(x) - p * t * math_sigmoid(-x); }
  BINADE_LOSS(dt) { return p * math_softplus(-x) - math_softplus(x); }
};

struct KlDiv {
  BINADE_LOSS(value) {
    const T loss = t * (math_log(t) - x);
    return t == T(0) ? T(0) : loss;
  }
  BINADE_LOSS(dx) { return -t; }
  BINADE_LOSS(dt) {
    const T slope = math_log(t) - x + T(1);
    return t == T(0) ? T(0) : slope;
  }
};

struct KlDivLogTarget {
  BINADE_LOSS(value) { return math_exp(t) * (t - x); }
  BINADE_LOSS(dx) { return -math_exp(t); }
  BINADE_LOSS(dt) { return math_exp(t) * (t - x + T(1)); }
};

#undef BINADE_LOSS

}  // namespace loss
}  // namespace
}  // namespace binade::kernels
