// Unary operations, casts, arithmetic and comparisons on all 65,536 values of f16 and of bf16:
// what is one rounding of the exact result has its bits; every other function is within one unit in
// the last place of the result in long double. Infinities and NaN come out as in PyTorch.
//
// On the emulated device every 61st value, unless BINADE_ALL_HALVES is set.
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/pointwise/pointwise.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/layouts.h>
#include <tests/kernels/support/test_device.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numbers>

namespace binade::kernels {
namespace {

using Real = long double;
using RealFunction = std::function<Real(Real)>;

constexpr DType kHalves[] = {DType::f16, DType::bf16};
constexpr int64_t kValues = 65536;

int64_t step() {
  static const bool all = every_combination() || std::getenv("BINADE_ALL_HALVES") != nullptr;
  return all ? 1 : 61;
}
int64_t count() { return (kValues + step() - 1) / step(); }

double value_of(DType dtype, uint16_t bits) {
  return dtype == DType::f16 ? static_cast<double>(std::bit_cast<half>(bits))
                             : static_cast<double>(std::bit_cast<bfloat16>(bits));
}
double rounded(DType dtype, double x) {
  return dtype == DType::f16 ? static_cast<double>(half(x)) : static_cast<double>(bfloat16(x));
}

// Value i is that of the bits i * step * factor + shift, which for an odd factor runs over all.
Array halves(DType dtype, uint32_t factor = 1, uint32_t shift = 0) {
  Array x(dtype, {count()});
  for (int64_t i = 0; i < count(); ++i) {
    const auto index = static_cast<uint32_t>(i * step());
    x.set(i, value_of(dtype, static_cast<uint16_t>(index * factor + shift)));
  }
  return x;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Distance between neighbours of the dtype near x.
double ulp(DType dtype, double x) {
  const double least = dtype == DType::f16 ? 0x1p-24 : 0x1p-133;
  return x == 0 ? least : std::fmax(least, std::ldexp(epsilon(dtype), std::ilogb(x)));
}

bool within_one_ulp(DType dtype, double got, Real exact) {
  const double nearest = rounded(dtype, static_cast<double>(exact));
  if (same(got, nearest)) {
    return true;
  }
  if (std::isinf(got) || std::isinf(nearest)) {  // the largest finite value beside infinity
    const double largest = dtype == DType::f16 ? 65504 : 0x1.fep127;
    return std::fabs(std::isinf(got) ? nearest : got) == largest && got * nearest > 0;
  }
  return std::fabs(got - exact) <= ulp(dtype, static_cast<double>(exact));
}

struct Case {
  Unary op;
  RealFunction f;
  bool exact = false;
  double alpha = 0, beta = 0;
};

Real sigmoid_of(Real x) { return 1 / (1 + std::exp(-x)); }
Real softplus_of(Real x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
Real gelu_tanh_of(Real x) {
  const Real u = std::sqrt(2 / std::numbers::pi_v<Real>) * x * (1 + 0.044715L * x * x);
  return x / (1 + std::exp(-2 * u));
}
Real limited(Real x, Real low, Real high) { return x < low ? low : x > high ? high : x; }

std::vector<Case> exact_cases() {
  return {
      {Unary::neg, [](Real x) { return -x; }, true},
      {Unary::abs, [](Real x) { return std::fabs(x); }, true},
      {Unary::square, [](Real x) { return x * x; }, true},
      {Unary::pow_scalar, [](Real x) { return x * x; }, true, 2},
      {Unary::sqrt, [](Real x) { return std::sqrt(x); }, true},
      {Unary::reciprocal, [](Real x) { return 1 / x; }, true},
      {Unary::relu, [](Real x) { return x < 0 ? 0 : x; }, true},
      {Unary::leaky_relu, [](Real x) { return x > 0 ? x : x / 4; }, true, 0.25},
      {Unary::clamp, [](Real x) { return limited(x, -1, 2); }, true, -1, 2},
      {Unary::clamp, [](Real x) { return x < -1 ? -1 : x; }, true, -1, INFINITY},
      {Unary::hardtanh, [](Real x) { return limited(x, -1, 2); }, true, -1, 2},
      {Unary::add_scalar, [](Real x) { return x + 0.75L; }, true, 0.75},
      {Unary::rsub_scalar, [](Real x) { return 0.75L - x; }, true, 0.75},
      {Unary::mul_scalar, [](Real x) { return x * 0.75L; }, true, 0.75},
      {Unary::div_scalar, [](Real x) { return x / 3; }, true, 3},
      {Unary::rdiv_scalar, [](Real x) { return 0.75L / x; }, true, 0.75},
      {Unary::sign, [](Real x) { return Real(x > 0) - Real(x < 0); }, true},
  };
}

std::vector<Case> rounded_cases() {
  return {
      {Unary::rsqrt, [](Real x) { return 1 / std::sqrt(x); }},
      {Unary::exp, [](Real x) { return std::exp(x); }},
      {Unary::expm1, [](Real x) { return std::expm1(x); }},
      {Unary::log, [](Real x) { return std::log(x); }},
      {Unary::log1p, [](Real x) { return std::log1p(x); }},
      {Unary::sin, [](Real x) { return std::sin(x); }},
      {Unary::cos, [](Real x) { return std::cos(x); }},
      {Unary::tanh, [](Real x) { return std::tanh(x); }},
      {Unary::sigmoid, sigmoid_of},
      {Unary::erf, [](Real x) { return std::erf(x); }},
      {Unary::gelu, [](Real x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2_v<Real>); }},
      {Unary::gelu_tanh, gelu_tanh_of},
      {Unary::silu, [](Real x) { return x * sigmoid_of(x); }},
      {Unary::softplus, [](Real x) { return x > 20 ? x : softplus_of(x); }, false, 1, 20},
      {Unary::softplus, [](Real x) { return 2 * x > 9 ? x : softplus_of(2 * x) / 2; }, false, 2, 9},
      {Unary::elu, [](Real x) { return x > 0 ? x : 1.5L * std::expm1(x); }, false, 1.5},
      {Unary::hardswish, [](Real x) { return x * (limited(x + 3, 0, 6) / 6); }},
      {Unary::mish, [](Real x) { return x * std::tanh(softplus_of(x)); }},
      {Unary::log_sigmoid, [](Real x) { return -softplus_of(-x); }},
      {Unary::pow_scalar, [](Real x) { return std::pow(x, Real(3)); }, false, 3},
      {Unary::pow_scalar, [](Real x) { return std::pow(x, Real(2.5)); }, false, 2.5},
      {Unary::pow_scalar, [](Real x) { return std::pow(x, Real(-1.5)); }, false, -1.5},
  };
}

void check_case(const Case& c, DType dtype) {
  Array x = halves(dtype), y(dtype, {count()});
  unary_forward({c.op, x.view(), y.view(), c.alpha, c.beta});
  int64_t wrong = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const Real exact = c.f(x[i]);
    const bool right = c.exact ? same(y[i], rounded(dtype, static_cast<double>(exact)))
                               : within_one_ulp(dtype, y[i], exact);
    if (!right && ++wrong <= 3) {
      ADD_FAILURE() << to_string(c.op) << " " << to_string(dtype) << " of " << x[i] << " is "
                    << y[i] << ", exactly " << exact;
    }
  }
  EXPECT_EQ(wrong, 0) << to_string(c.op) << " " << to_string(dtype);
}

TEST(AllHalves, EveryUnaryOperationIsTested) {
  std::vector<bool> seen(kUnaryCount);
  for (const auto& cases : {exact_cases(), rounded_cases()}) {
    for (const Case& c : cases) {
      seen[static_cast<size_t>(c.op)] = true;
    }
  }
  for (int i = 0; i < kUnaryCount; ++i) {
    EXPECT_TRUE(seen[static_cast<size_t>(i)]) << kUnaryName[i];
  }
}

TEST(AllHalves, UnaryThatRoundOnceAreExact) {
  for (const Case& c : exact_cases()) {
    for (DType dtype : kHalves) {
      check_case(c, dtype);
    }
  }
}

TEST(AllHalves, UnaryAreWithinOneUlp) {
  for (const Case& c : rounded_cases()) {
    for (DType dtype : kHalves) {
      check_case(c, dtype);
    }
  }
}

TEST(AllHalves, ArithmeticAndComparisonsAreExact) {
  const std::function<double(double, double)> arithmetic[] = {
      [](double a, double b) { return a + b; },
      [](double a, double b) { return a - b; },
      [](double a, double b) { return a * b; },
      [](double a, double b) { return a / b; },
      [](double a, double b) { return std::isnan(b) ? b
                                      : a < b       ? b
                                                    : a; },
      [](double a, double b) { return std::isnan(b) ? b
                                      : a > b       ? b
                                                    : a; }};
  const std::function<bool(double, double)> comparison[] = {
      std::equal_to<>(),   std::not_equal_to<>(), std::less<>(),
      std::less_equal<>(), std::greater<>(),      std::greater_equal<>()};
  for (DType dtype : kHalves) {
    // Each value with itself, with its negative, with neighbours and with four others.
    const uint32_t partners[][2] = {{1, 0},     {1, 32768},     {1, 1},        {1, 65535},
                                    {40503, 7}, {26545, 12345}, {9949, 31337}, {65521, 54321}};
    for (const auto& [factor, shift] : partners) {
      Array a = halves(dtype), b = halves(dtype, factor, shift);
      Array y(dtype, {count()}), truth(DType::boolean, {count()});
      for (int op = 0; op <= static_cast<int>(Binary::minimum); ++op) {
        binary_forward({Binary(op), a.view(), b.view(), y.view()});
        for (int64_t i = 0; i < count(); ++i) {
          ASSERT_TRUE(same(y[i], rounded(dtype, arithmetic[op](a[i], b[i]))))
              << kBinaryName[op] << " " << to_string(dtype) << " of " << a[i] << " and " << b[i]
              << " is " << y[i] << ", exactly " << arithmetic[op](a[i], b[i]);
        }
      }
      for (int op = 0; op < kCompareCount; ++op) {
        compare_forward({Compare(op), a.view(), b.view(), truth.view()});
        for (int64_t i = 0; i < count(); ++i) {
          ASSERT_EQ(truth[i] != 0, comparison[op](a[i], b[i])) << kCompareName[op];
        }
      }
    }
  }
}

TEST(AllHalves, CastsAreExact) {
  for (DType from : kHalves) {
    Array x = halves(from);
    for (DType to : kFloatingDTypes) {
      Array y(to, {count()}), back(from, {count()});
      copy({.x = x.view(), .y = y.view()});
      copy({.x = y.view(), .y = back.view()});
      for (int64_t i = 0; i < count(); ++i) {
        const double expected = is_half(to) ? rounded(to, x[i]) : x[i];
        ASSERT_TRUE(same(y[i], expected)) << to_string(from) << " to " << to_string(to) << x[i];
        ASSERT_TRUE(same(back[i], rounded(from, expected))) << to_string(to) << expected;
        ASSERT_TRUE(std::isnan(expected) || std::signbit(y[i]) == std::signbit(expected));
      }
    }
  }
}

}  // namespace
}  // namespace binade::kernels
