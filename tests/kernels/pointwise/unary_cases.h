// Every unary operation with its formula, written once. The kernel tests, the tests of all f16 and
// bf16 values, and the rows of the op table are made from these cases. An operation may have
// several cases, which differ in options or range.
#pragma once
#include <binade/kernels/pointwise/pointwise.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <type_traits>
#include <vector>

namespace binade::kernels {

// f(x), f(x, alpha) or f(x, alpha, beta), in double. It matches PyTorch everywhere, also at
// infinities, NaN and the largest numbers.
class Formula {
 public:
  template <class F>
  Formula(F f)  // NOLINT(google-explicit-constructor): written as a lambda in the cases
      : f_([f](double x, double alpha, double beta) -> double {
          if constexpr (std::is_invocable_v<F, double>) {
            return f(x);
          } else if constexpr (std::is_invocable_v<F, double, double>) {
            return f(x, alpha);
          } else {
            return f(x, alpha, beta);
          }
        }) {}
  double operator()(double x, double alpha, double beta) const { return f_(x, alpha, beta); }

 private:
  std::function<double(double, double, double)> f_;
};

struct UnaryCase {
  Unary op;
  Formula formula;
  double low = -3, high = 3;       // range where f is compared with its reference
  std::vector<double> kinks = {};  // points without a derivative, or where the formula changes
  double alpha = 0, beta = 0;      // options, with PyTorch's defaults
  bool exact = false;              // one IEEE operation: the result is the rounded formula
  double floor = 0;                // errors are relative to max(|y|, floor): f cancels near a zero
  double ulps = 4;                 // allowed error of f32 and f64
  double f(double x) const { return formula(x, alpha, beta); }
};

// Ops with an option are also tried with this value.
inline constexpr double kOtherOption = 0.6;

inline double logistic(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
inline double log1p_exp(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
inline double limited(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}
inline double power(double x, double exponent) { return std::pow(x, exponent); }
inline double softplus_of(double x, double beta, double threshold) {
  return beta * x > threshold ? x : log1p_exp(beta * x) / beta;
}
inline double gelu_by_tanh(double x) {
  const double u = std::sqrt(2 / std::numbers::pi) * x * (1 + 0.044715 * x * x);
  return x / (1 + std::exp(-2 * u));  // equals x (1 + tanh(u)) / 2 without cancellation
}

// The points where step functions jump.
inline const std::vector<double> kWhole = {-6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6};
inline const std::vector<double> kHalves = {-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5};

inline const std::vector<UnaryCase>& unary_cases() {
  static const std::vector<UnaryCase> cases = {
      {.op = Unary::abs,
       .formula = [](double x) { return std::fabs(x); },
       .kinks = {0},
       .exact = true},
      {.op = Unary::square, .formula = [](double x) { return x * x; }, .exact = true},
      {.op = Unary::sqrt,
       .formula = [](double x) { return std::sqrt(x); },
       .low = 0.3,
       .exact = true},
      {.op = Unary::rsqrt, .formula = [](double x) { return 1 / std::sqrt(x); }, .low = 0.3},
      {.op = Unary::reciprocal,
       .formula = [](double x) { return 1 / x; },
       .kinks = {0},
       .exact = true},
      {.op = Unary::exp, .formula = [](double x) { return std::exp(x); }},
      {.op = Unary::expm1, .formula = [](double x) { return std::expm1(x); }},
      {.op = Unary::expm1,
       .formula = [](double x) { return std::expm1(x); },
       .low = -1e-3,
       .high = 1e-3},
      {.op = Unary::log,
       .formula = [](double x) { return std::log(x); },
       .low = 0.3,
       .floor = 0.05},
      {.op = Unary::log1p, .formula = [](double x) { return std::log1p(x); }, .low = -0.7},
      {.op = Unary::sin, .formula = [](double x) { return std::sin(x); }},
      {.op = Unary::cos, .formula = [](double x) { return std::cos(x); }, .floor = 0.1},
      {.op = Unary::tan, .formula = [](double x) { return std::tan(x); }, .low = -1.2, .high = 1.2},
      {.op = Unary::asin,
       .formula = [](double x) { return std::asin(x); },
       .low = -0.8,
       .high = 0.8},
      {.op = Unary::acos,
       .formula = [](double x) { return std::acos(x); },
       .low = -0.8,
       .high = 0.8},
      {.op = Unary::atan, .formula = [](double x) { return std::atan(x); }},
      {.op = Unary::sinh, .formula = [](double x) { return std::sinh(x); }},
      {.op = Unary::cosh, .formula = [](double x) { return std::cosh(x); }},
      {.op = Unary::floor,
       .formula = [](double x) { return std::floor(x); },
       .low = -6.5,
       .high = 6.5,
       .kinks = kWhole,
       .exact = true},
      {.op = Unary::ceil,
       .formula = [](double x) { return std::ceil(x); },
       .low = -6.5,
       .high = 6.5,
       .kinks = kWhole,
       .exact = true},
      {.op = Unary::round,
       .formula = [](double x) { return std::nearbyint(x); },
       .low = -4,
       .high = 4,
       .kinks = kHalves,
       .exact = true},
      {.op = Unary::trunc,
       .formula = [](double x) { return std::trunc(x); },
       .low = -6.5,
       .high = 6.5,
       .kinks = kWhole,
       .exact = true},
      {.op = Unary::frac,
       .formula = [](double x) { return x - std::trunc(x); },
       .low = -6.5,
       .high = 6.5,
       .kinks = kWhole,
       .exact = true},
      {.op = Unary::tanh, .formula = [](double x) { return std::tanh(x); }, .low = -2, .high = 2},
      {.op = Unary::erf, .formula = [](double x) { return std::erf(x); }},
      {.op = Unary::sign,
       .formula = [](double x) { return (x > 0) - (x < 0); },
       .kinks = {0},
       .exact = true},
      {.op = Unary::sigmoid, .formula = logistic},
      {.op = Unary::log_sigmoid, .formula = [](double x) { return -log1p_exp(-x); }},
      {.op = Unary::relu,
       .formula = [](double x) { return x < 0 ? 0 : x; },
       .low = -0.6,
       .kinks = {0},
       .exact = true},
      {.op = Unary::leaky_relu,
       .formula = [](double x, double slope) { return x > 0 ? x : slope * x; },
       .kinks = {0},
       .alpha = 0.01},
      {.op = Unary::gelu,
       .formula = [](double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); },
       .floor = 0.25},
      {.op = Unary::gelu_tanh, .formula = gelu_by_tanh, .floor = 0.25},
      {.op = Unary::silu, .formula = [](double x) { return x * logistic(x); }},
      {.op = Unary::softplus, .formula = softplus_of, .kinks = {2}, .alpha = 2, .beta = 4},
      {.op = Unary::softplus, .formula = softplus_of, .alpha = 1, .beta = 20},
      {.op = Unary::elu,
       .formula = [](double x, double alpha) { return x > 0 ? x : alpha * std::expm1(x); },
       .kinks = {0},
       .alpha = 1,
       .floor = 0.1},
      {.op = Unary::mish,
       .formula = [](double x) { return x * std::tanh(log1p_exp(x)); },
       .ulps = 8},
      {.op = Unary::hardswish,
       .formula = [](double x) { return x * (limited(x + 3, 0, 6) / 6); },
       .low = -3.5,
       .high = 5,
       .kinks = {-3, 3}},
      {.op = Unary::selu,
       .formula =
           [](double x) {
             return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543773 * std::expm1(x));
           },
       .kinks = {0},
       .floor = 0.1},
      {.op = Unary::celu,
       .formula = [](double x, double alpha) { return x > 0 ? x : alpha * std::expm1(x / alpha); },
       .kinks = {0},
       .alpha = 1,
       .floor = 0.1},
      {.op = Unary::softsign,
       .formula = [](double x) { return x / (1 + std::fabs(x)); },
       .kinks = {0}},
      {.op = Unary::hardsigmoid,
       .formula = [](double x) { return limited(x + 3, 0, 6) / 6; },
       .low = -3.5,
       .high = 5,
       .kinks = {-3, 3}},
      {.op = Unary::exp2, .formula = [](double x) { return std::exp2(x); }},
      {.op = Unary::log2,
       .formula = [](double x) { return std::log2(x); },
       .low = 0.3,
       .floor = 0.1},
      // Operations without an op of the same name and signature.
      {.op = Unary::neg, .formula = [](double x) { return -x; }, .exact = true},
      {.op = Unary::clamp,
       .formula = limited,
       .kinks = {-1, 2},
       .alpha = -1,
       .beta = 2,
       .exact = true},
      {.op = Unary::clamp,
       .formula = limited,
       .kinks = {-1},
       .alpha = -1,
       .beta = INFINITY,
       .exact = true},
      {.op = Unary::hardtanh,
       .formula = limited,
       .kinks = {-1, 2},
       .alpha = -1,
       .beta = 2,
       .exact = true},
      {.op = Unary::add_scalar,
       .formula = [](double x, double number) { return x + number; },
       .alpha = 0.75,
       .exact = true},
      {.op = Unary::rsub_scalar,
       .formula = [](double x, double number) { return number - x; },
       .alpha = 0.75,
       .exact = true},
      {.op = Unary::mul_scalar,
       .formula = [](double x, double number) { return x * number; },
       .alpha = 0.75,
       .exact = true},
      {.op = Unary::div_scalar,
       .formula = [](double x, double number) { return x / number; },
       .alpha = 3,
       .exact = true},
      {.op = Unary::rdiv_scalar,
       .formula = [](double x, double number) { return number / x; },
       .kinks = {0},
       .alpha = 0.75,
       .exact = true},
      {.op = Unary::pow_scalar, .formula = power, .alpha = 1, .exact = true},
      {.op = Unary::pow_scalar, .formula = power, .alpha = 2, .exact = true},
      {.op = Unary::pow_scalar, .formula = power, .alpha = 3},
      {.op = Unary::pow_scalar, .formula = power, .low = 0.1, .alpha = 2.5},
      {.op = Unary::pow_scalar, .formula = power, .low = 0.1, .alpha = -1.5},
  };
  return cases;
}

// True if the public op of this name takes alpha as an option with a default.
constexpr bool has_option(Unary op) {
#define BINADE_IS(name, ...) op == Unary::name ||
  return BINADE_UNARY_OPTION_OPS(BINADE_IS) false;
#undef BINADE_IS
}

}  // namespace binade::kernels
