// Every binary operation with its formula, written once. The kernel tests, the tests of all f16 and
// bf16 values, and the rows of the op table are made from these cases.
#pragma once
#include <binade/kernels/pointwise/pointwise.h>

#include <cmath>
#include <vector>

namespace binade::kernels {

struct BinaryCase {
  Binary op;
  // The formula in double. It matches PyTorch everywhere, also at infinities, NaN and huge numbers.
  double (*f)(double a, double b);
  double low = -3, high = 3;         // range of a in comparisons with the reference
  double b_low = -3, b_high = 3;     // range of b
  std::vector<double> b_kinks = {};  // points that b avoids
  bool apart = false;                // a and b are never equal or close
  bool jumps = false;                // jumps where a / b is an integer
  bool exact = false;                // one IEEE operation: the result is the rounded formula
  double floor = 0;                  // errors are relative to max(|y|, floor)
  double ulps = 4;                   // allowed error of f32 and f64
};

inline double floor_quotient(double a, double b) {
  const double rest = std::fmod(a, b), below = rest != 0 && (rest < 0) != (b < 0) ? 1 : 0;
  return b == 0 ? a / b : std::round((a - rest) / b - below);  // NaN for an infinite a
}
inline double python_rest(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

inline const std::vector<BinaryCase>& binary_cases() {
  static const std::vector<BinaryCase> cases = {
      {.op = Binary::add, .f = [](double a, double b) { return a + b; }, .exact = true},
      {.op = Binary::sub, .f = [](double a, double b) { return a - b; }, .exact = true},
      {.op = Binary::mul, .f = [](double a, double b) { return a * b; }, .exact = true},
      {.op = Binary::div,
       .f = [](double a, double b) { return a / b; },
       .b_kinks = {0},
       .exact = true},
      {.op = Binary::pow, .f = [](double a, double b) { return std::pow(a, b); }, .low = 0.3},
      {.op = Binary::maximum,
       .f = [](double a, double b) { return a > b || std::isnan(a) ? a : b; },
       .apart = true,
       .exact = true},
      {.op = Binary::minimum,
       .f = [](double a, double b) { return a < b || std::isnan(a) ? a : b; },
       .apart = true,
       .exact = true},
      {.op = Binary::floor_divide, .f = floor_quotient, .b_kinks = {0}, .jumps = true},
      {.op = Binary::remainder, .f = python_rest, .b_kinks = {0}, .jumps = true, .exact = true},
      {.op = Binary::fmod,
       .f = [](double a, double b) { return std::fmod(a, b); },
       .b_kinks = {0},
       .jumps = true,
       .exact = true},
      {.op = Binary::atan2, .f = [](double a, double b) { return std::atan2(a, b); }, .low = 0.3},
      {.op = Binary::logaddexp,
       .f =
           [](double a, double b) {
             return a == b ? a + std::log(2.0)
                           : std::fmax(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
           },
       .floor = 0.5},
  };
  return cases;
}

}  // namespace binade::kernels
