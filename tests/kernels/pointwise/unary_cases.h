// Every unary operation with its formula in double and the range to test it on.
#pragma once
#include <binade/kernels/pointwise/pointwise.h>

#include <cmath>
#include <functional>
#include <vector>

namespace binade::kernels {

struct UnaryCase {
  Unary op;
  std::function<double(double)> f;
  double low = -3, high = 3, alpha = 0, beta = 0;
};

inline double phi(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }
inline double log1p_exp(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

inline const std::vector<UnaryCase>& unary_cases() {
  static const std::vector<UnaryCase> cases = {
      {Unary::neg, [](double x) { return -x; }},
      {Unary::abs, [](double x) { return std::fabs(x); }},
      {Unary::square, [](double x) { return x * x; }},
      {Unary::sqrt, [](double x) { return std::sqrt(x); }, 0.1, 9},
      {Unary::rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.1, 9},
      {Unary::reciprocal, [](double x) { return 1 / x; }, 0.2, 3},
      {Unary::exp, [](double x) { return std::exp(x); }},
      {Unary::log, [](double x) { return std::log(x); }, 0.1, 9},
      {Unary::sin, [](double x) { return std::sin(x); }},
      {Unary::cos, [](double x) { return std::cos(x); }},
      {Unary::tanh, [](double x) { return std::tanh(x); }},
      {Unary::sigmoid, logistic},
      {Unary::relu, [](double x) { return x > 0 ? x : 0; }},
      {Unary::leaky_relu, [](double x) { return x > 0 ? x : 0.25 * x; }, -3, 3, 0.25},
      {Unary::gelu, [](double x) { return x * phi(x); }},
      {Unary::gelu_tanh,
       [](double x) {
         return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
       }},
      {Unary::silu, [](double x) { return x * logistic(x); }},
      {Unary::softplus, [](double x) { return 2 * x > 4 ? x : log1p_exp(2 * x) / 2; }, -3, 3, 2, 4},
      {Unary::elu, [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }, -3, 3, 1.5},
      {Unary::clamp, [](double x) { return std::fmin(std::fmax(x, -1), 2); }, -3, 3, -1, 2},
      {Unary::add_scalar, [](double x) { return x + 0.75; }, -3, 3, 0.75},
      {Unary::rsub_scalar, [](double x) { return 0.75 - x; }, -3, 3, 0.75},
      {Unary::div_scalar, [](double x) { return x / 3; }, -3, 3, 3},
      {Unary::rdiv_scalar, [](double x) { return 0.75 / x; }, 0.2, 3, 0.75},
      {Unary::mul_scalar, [](double x) { return x * 0.75; }, -3, 3, 0.75},
      {Unary::pow_scalar, [](double x) { return std::pow(x, 2.5); }, 0.1, 3, 2.5},
      {Unary::pow_scalar, [](double x) { return x * x; }, -3, 3, 2},
      {Unary::pow_scalar, [](double x) { return x * x * x; }, -3, 3, 3},
      {Unary::pow_scalar, [](double x) { return x; }, -3, 3, 1},
      {Unary::expm1, [](double x) { return std::expm1(x); }},
      {Unary::log1p, [](double x) { return std::log1p(x); }, -0.9, 5},
      {Unary::sign, [](double x) { return (x > 0) - (x < 0); }},
      {Unary::hardtanh, [](double x) { return std::fmin(std::fmax(x, -1), 2); }, -3, 3, -1, 2},
      {Unary::erf, [](double x) { return std::erf(x); }},
      {Unary::hardswish, [](double x) { return x * std::fmin(std::fmax(x + 3, 0), 6) / 6; }, -5, 5},
      {Unary::mish, [](double x) { return x * std::tanh(log1p_exp(x)); }},
      {Unary::log_sigmoid, [](double x) { return -log1p_exp(-x); }},
  };
  return cases;
}

}  // namespace binade::kernels
