// Tests unary and binary operations and comparisons: values against the C library in double, slopes
// against central differences, all layouts, kinks and ties, special values, accuracy in f32.
#include <binade/kernels/pointwise/pointwise.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/pointwise/binary_cases.h"
#include "tests/kernels/pointwise/unary_cases.h"
#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::pointwise_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double slope(const std::function<double(double)>& f, double x) {
  const double h = 1e-5 * std::fmax(1, std::fabs(x));
  return (f(x - 2 * h) - 8 * f(x - h) + 8 * f(x + h) - f(x + 2 * h)) / (12 * h);
}

// The error of rounding the inputs and the result to the dtype, for values of magnitude `scale`.
double tolerance(DType dtype, double scale) {
  return (dtype == DType::f64 ? 1e-9 : 4 * epsilon(dtype)) * (scale + 1);
}

TEST(Unary, ForwardAndGradient) {
  for (const UnaryCase& c : unary_cases()) {
    for (DType dtype : floating_dtypes()) {
      Array x(dtype, {3, 411}), y(dtype, {3, 411}), dy(dtype, {3, 411}), dx(dtype, {3, 411});
      x.random(1, c.low, c.high);
      dy.random(2);
      unary_forward({c.op, x.view(), y.view(), c.alpha, c.beta});
      const View saved = backward_uses_output(c.op) ? y.view() : x.view();
      unary_backward({c.op, saved, dy.view(), dx.view(), c.alpha, c.beta});
      for (int64_t i = 0; i < x.numel(); ++i) {
        const double f = c.f(x[i]);
        ASSERT_NEAR(y[i], f, tolerance(dtype, std::fabs(f)) / 2)
            << to_string(c.op) << " " << to_string(dtype) << " at " << x[i];
        if (std::fabs(c.f(x[i] + 1e-4) - 2 * f + c.f(x[i] - 1e-4)) > 1e-5) {
          continue;  // no difference quotient at a kink
        }
        // The gradient may be computed from a rounded output, which costs a few more units.
        const double df = slope([&](double v) { return c.f(v); }, x[i]) * dy[i];
        ASSERT_NEAR(dx[i], df, 3 * tolerance(dtype, std::fabs(df)))
            << to_string(c.op) << " " << to_string(dtype) << " at " << x[i];
      }
    }
  }
}

TEST(Unary, Layouts) {
  for (DType dtype : floating_dtypes()) {
    for (const Dims& sizes : test_shapes()) {
      for (Layout x_layout : kInputLayouts) {
        for (Layout y_layout : kOutputLayouts) {
          Array x(dtype, sizes, x_layout), dy(dtype, sizes), y(dtype, sizes, y_layout);
          x.random(1);
          dy.random(2);
          unary_forward({.op = Unary::square, .x = x.view(), .y = y.view()});
          ASSERT_TRUE(y.gaps_untouched()) << describe(dtype, sizes, y_layout);
          for (int64_t i = 0; i < x.numel(); ++i) {
            ASSERT_NEAR(y[i], x[i] * x[i], 9 * epsilon(dtype)) << describe(dtype, sizes, x_layout);
          }
          unary_backward({.op = Unary::square, .saved = x.view(), .dy = dy.view(), .dx = y.view()});
          for (int64_t i = 0; i < x.numel(); ++i) {
            ASSERT_NEAR(y[i], 2 * x[i] * dy[i], 18 * epsilon(dtype));
          }
        }
      }
    }
  }
}

double apply(Unary op, double x, DType dtype, double alpha = 0, double beta = 0) {
  Array a(dtype, {}), y(dtype, {});
  a.set(0, x);
  unary_forward({op, a.view(), y.view(), alpha, beta});
  return y[0];
}
double gradient(Unary op, double saved, double alpha = 0, double beta = 0) {
  Array a(DType::f32, {}), dy(DType::f32, {}), dx(DType::f32, {});
  a.set(0, saved);
  dy.set(0, 1);
  unary_backward({op, a.view(), dy.view(), dx.view(), alpha, beta});
  return dx[0];
}

TEST(Unary, GradientAtKinks) {
  EXPECT_EQ(gradient(Unary::abs, 0), 0);
  EXPECT_EQ(gradient(Unary::sign, 0), 0);
  EXPECT_EQ(gradient(Unary::relu, 0), 0);
  EXPECT_EQ(gradient(Unary::leaky_relu, 0, 0.25), 0.25);
  EXPECT_EQ(gradient(Unary::elu, 0, 1.5), 1.5);
  EXPECT_EQ(gradient(Unary::clamp, -1, -1, 2), 1);
  EXPECT_EQ(gradient(Unary::clamp, 2, -1, 2), 1);
  EXPECT_EQ(gradient(Unary::hardtanh, -1, -1, 2), 0);
  EXPECT_EQ(gradient(Unary::hardtanh, 2, -1, 2), 0);
  EXPECT_EQ(gradient(Unary::hardtanh, kNan, -1, 2), 1);  // as in PyTorch, also for relu
  EXPECT_EQ(gradient(Unary::pow_scalar, 0, 0), 0);
}

TEST(Unary, SpecialValues) {
  struct Row {
    Unary op;
    double at_inf, at_minus_inf, at_zero;
  };
  const Row rows[] = {{Unary::abs, kInf, kInf, 0},
                      {Unary::exp, kInf, 0, 1},
                      {Unary::expm1, kInf, -1, 0},
                      {Unary::log, kInf, kNan, -kInf},
                      {Unary::log1p, kInf, kNan, 0},
                      {Unary::sqrt, kInf, kNan, 0},
                      {Unary::rsqrt, 0, kNan, kInf},
                      {Unary::reciprocal, 0, 0, kInf},
                      {Unary::relu, kInf, 0, 0},
                      {Unary::tanh, 1, -1, 0},
                      {Unary::sigmoid, 1, 0, 0.5},
                      {Unary::erf, 1, -1, 0},
                      {Unary::log_sigmoid, 0, -kInf, -std::log(2.0)}};
  for (DType dtype : {DType::f32, DType::f64}) {
    for (const Row& row : rows) {
      const auto same = [&](double got, double expected) {
        return std::isnan(expected) ? std::isnan(got)
                                    : std::fabs(got - expected) < 1e-6 || got == expected;
      };
      EXPECT_TRUE(same(apply(row.op, kInf, dtype), row.at_inf)) << to_string(row.op);
      EXPECT_TRUE(same(apply(row.op, -kInf, dtype), row.at_minus_inf)) << to_string(row.op);
      EXPECT_TRUE(same(apply(row.op, 0, dtype), row.at_zero)) << to_string(row.op);
    }
    for (const UnaryCase& c : unary_cases()) {
      if (c.op != Unary::sign) {
        EXPECT_TRUE(std::isnan(apply(c.op, kNan, dtype, c.alpha, c.beta))) << to_string(c.op);
      }
    }
  }
}

// A result that rounds to a limit must be that limit and not its neighbour.
TEST(Unary, ResultsFarFromZeroAreTheirLimits) {
  constexpr int64_t kCount = 1003;
  struct Row {
    Unary op;
    double above, below, from;  // from this magnitude on, the limit is the nearest f32
  };
  const Row rows[] = {{Unary::tanh, 1, -1, 9.02},
                      {Unary::erf, 1, -1, 4},
                      {Unary::sigmoid, 1, 0, 150},
                      {Unary::expm1, kInf, -1, 150}};
  for (const Row& row : rows) {
    for (const double sign : {1, -1}) {
      Array x(DType::f32, {kCount}), y(DType::f32, {kCount});
      for (int64_t i = 0; i < kCount; ++i) {  // geometric steps to at least 1e34, then infinity
        const double size = row.from * std::pow(10, 0.034 * static_cast<double>(i));
        x.set(i, sign * (i < kCount - 1 ? size : kInf));
      }
      unary_forward({.op = row.op, .x = x.view(), .y = y.view()});
      for (int64_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(y[i], sign > 0 ? row.above : row.below) << to_string(row.op) << " at " << x[i];
      }
    }
  }
}

// The largest relative error of an operation in units of 2^-24 (half to one unit in the last place
// of f32) over [low, high].
double worst_ulps(Unary op, double low, double high, double alpha = 0, double beta = 0) {
  constexpr int64_t kCount = 20011;
  Array x(DType::f32, {kCount}), y(DType::f32, {kCount}), wide(DType::f64, {kCount});
  Array exact(DType::f64, {kCount});
  x.random(9, low, high);
  for (int64_t i = 0; i < kCount; ++i) {
    wide.set(i, x[i]);
  }
  unary_forward({op, x.view(), y.view(), alpha, beta});
  unary_forward({op, wide.view(), exact.view(), alpha, beta});
  double worst = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const double unit = std::fmax(std::ldexp(std::fabs(exact[i]), -24), 0x1p-149);
    worst = std::fmax(worst, std::fabs(y[i] - exact[i]) / unit);
  }
  return worst;
}

TEST(Unary, SinglePrecisionIsAccurate) {
  EXPECT_LT(worst_ulps(Unary::exp, -103, 88.7), 3);
  EXPECT_LT(worst_ulps(Unary::exp, -1e-3, 1e-3), 3);
  EXPECT_LT(worst_ulps(Unary::expm1, -20, 20), 5);
  EXPECT_LT(worst_ulps(Unary::expm1, -1e-3, 1e-3), 3);
  EXPECT_LT(worst_ulps(Unary::log, 1e-30, 100), 4);
  EXPECT_LT(worst_ulps(Unary::log, 0.7, 1.5), 4);
  EXPECT_LT(worst_ulps(Unary::log, 1e-44, 1e-38), 4);
  EXPECT_LT(worst_ulps(Unary::log1p, -0.99, 10), 5);
  EXPECT_LT(worst_ulps(Unary::log1p, -1e-5, 1e-5), 3);
  EXPECT_LT(worst_ulps(Unary::tanh, -10, 10), 6);
  EXPECT_LT(worst_ulps(Unary::tanh, -1e-3, 1e-3), 5);
  EXPECT_LT(worst_ulps(Unary::sigmoid, -87, 20), 5);
  EXPECT_LT(worst_ulps(Unary::erf, -4, 4), 5);
  EXPECT_LT(worst_ulps(Unary::gelu, -12, 12), 10);
  EXPECT_LT(worst_ulps(Unary::gelu, -13, -2), 8);  // erfc(x) of a rounded x would be 170 off here
  EXPECT_LT(worst_ulps(Unary::gelu, -1e-3, 1e-3), 10);
  EXPECT_LT(worst_ulps(Unary::silu, -87, 20), 6);
  EXPECT_LT(worst_ulps(Unary::softplus, -87, 40, 1, 100), 6);
  EXPECT_LT(worst_ulps(Unary::mish, -40, 40), 10);
  EXPECT_LT(worst_ulps(Unary::log_sigmoid, -40, 80), 6);
}

TEST(Binary, ForwardAndGradientInEveryLayout) {
  for (const BinaryCase& c : binary_cases()) {
    for (DType dtype : floating_dtypes()) {
      for (Layout layout : kInputLayouts) {
        const Dims sizes = {3, 4, 2, 5};
        const bool input_only = layout == Layout::same_rows || layout == Layout::same_columns;
        const Layout out = input_only ? Layout::contiguous : layout;
        Array a(dtype, sizes, layout), b(dtype, sizes), y(dtype, sizes, out), dy(dtype, sizes);
        Array da(dtype, sizes, out), db(dtype, sizes);
        a.random(1, c.low, c.high);
        b.random(2, c.b_low, c.b_high);
        dy.random(3);
        binary_forward({c.op, a.view(), b.view(), y.view()});
        binary_backward({c.op, a.view(), b.view(), dy.view(), da.view(), db.view()});
        for (int64_t i = 0; i < y.numel(); ++i) {
          const double x = a[i], z = b[i], f = c.f(x, z);
          if (std::any_of(c.b_kinks.begin(), c.b_kinks.end(),
                          [z = z](double kink) { return std::fabs(z - kink) < 0.3; })) {
            continue;
          }
          const double dfda = dy[i] * slope([&](double v) { return c.f(v, z); }, x);
          const double dfdb = dy[i] * slope([&](double v) { return c.f(x, v); }, z);
          ASSERT_NEAR(y[i], f, tolerance(dtype, std::fabs(f)) / 4) << to_string(c.op);
          const bool at_jump = c.jumps && std::fabs(x / z - std::nearbyint(x / z)) < 1e-3;
          if (x != z && !at_jump) {
            ASSERT_NEAR(da[i], dfda, tolerance(dtype, std::fabs(dfda))) << to_string(c.op);
            ASSERT_NEAR(db[i], dfdb, tolerance(dtype, std::fabs(dfdb))) << to_string(c.op);
          }
        }
        EXPECT_TRUE(y.gaps_untouched() && da.gaps_untouched());
      }
    }
  }
}

TEST(Binary, Broadcasts) {
  const Dims shapes[] = {{2, 3, 5}, {5}, {1}, {}, {3, 1}, {2, 1, 1}, {1, 3, 5}, {2, 1, 5}};
  const Dims sizes = {2, 3, 5};
  for (DType dtype : {DType::f64, DType::f16, DType::i64, DType::i32}) {
    for (const Dims& a_sizes : shapes) {
      for (const Dims& b_sizes : shapes) {
        Array a(dtype, a_sizes), b(dtype, b_sizes), y(dtype, sizes);
        a.random(1, -50, 50);
        b.random(2, -50, 50);
        binary_forward({Binary::sub, a.view(), b.view(), y.view()});
        const auto index = [&](const Dims& s, int64_t i) {
          const int64_t at[3] = {i / 15, i / 5 % 3, i % 5};
          int64_t sum = 0;
          for (int d = 0; d < s.size(); ++d) {
            sum = sum * s[d] + (s[d] == 1 ? 0 : at[d + 3 - s.size()]);
          }
          return sum;
        };
        for (int64_t i = 0; i < 30; ++i) {
          const double expected = a[index(a_sizes, i)] - b[index(b_sizes, i)];
          ASSERT_NEAR(y[i], expected, 100 * epsilon(dtype)) << a_sizes.size() << b_sizes.size();
        }
      }
    }
  }
  Array a(DType::f32, {2, 2}), y(DType::f32, {2, 3});
  EXPECT_THROW(binary_forward({Binary::add, a.view(), y.view(), y.view()}), Error);
}

TEST(Binary, TiesNanAndMissingOutputs) {
  TestValues<float> a{1, 2, 5}, b{1, 3, 4}, dy{2, 2, 2}, da(3), db(3);
  const auto of = [](TestValues<float>& p) { return p.view(DType::f32, {3}); };
  binary_backward({Binary::maximum, of(a), of(b), of(dy), of(da), of(db)});
  EXPECT_EQ(da[0], 1);
  EXPECT_EQ(db[0], 1);
  EXPECT_EQ(da[1], 0);
  EXPECT_EQ(db[1], 2);
  binary_backward({Binary::minimum, of(a), of(b), of(dy), kNoView, of(db)});
  EXPECT_EQ(db[0], 1);
  EXPECT_EQ(db[1], 0);
  EXPECT_EQ(db[2], 2);
  binary_backward({Binary::sub, kNoView, kNoView, of(dy), of(da), of(db)});
  EXPECT_EQ(da[1], 2);
  EXPECT_EQ(db[1], -2);
  TestValues<float> x{NAN, 1, INFINITY}, z{0, NAN, 1}, y(3);
  for (Binary op : {Binary::maximum, Binary::minimum}) {
    binary_forward({op, of(x), of(z), of(y)});
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
    EXPECT_EQ(y[2], op == Binary::maximum ? INFINITY : 1.0f);
  }
  binary_backward({Binary::pow, of(x), of(z), of(dy), of(da), kNoView});
  EXPECT_EQ(da[0], 0);  // exponent 0
}

TEST(Binary, IntegersWrapAndRejectDivision) {
  TestValues<int64_t> a{INT64_MAX}, b{1}, y{0};
  const auto of = [](TestValues<int64_t>& p) { return p.view(DType::i64, {1}); };
  binary_forward({Binary::add, of(a), of(b), of(y)});
  EXPECT_EQ(y[0], INT64_MIN);
  EXPECT_THROW(binary_forward({Binary::div, of(a), of(b), of(y)}), Error);
  EXPECT_THROW(binary_forward({Binary::add, kNoView, of(b), of(y)}), Error);
}

TEST(Compare, AgreesWithDoubleForEveryDType) {
  const std::function<bool(double, double)> reference[] = {
      std::equal_to<>(),   std::not_equal_to<>(), std::less<>(),
      std::less_equal<>(), std::greater<>(),      std::greater_equal<>()};
  for (int op = 0; op < kCompareCount; ++op) {
    for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
      for (Layout layout : kInputLayouts) {
        Array a(DType(dtype), {3, 4, 50}, layout), b(DType(dtype), {4, 50});
        Array y(DType::boolean, {3, 4, 50}, layout < Layout::same_rows ? layout : Layout::step2);
        a.random(1, 0, 4);
        b.random(2, 0, 4);
        a.set(7, b[7]);
        compare_forward({Compare(op), a.view(), b.view(), y.view()});
        for (int64_t i = 0; i < y.numel(); ++i) {
          ASSERT_EQ(y[i] != 0, reference[op](a[i], b[i % 200])) << kCompareName[op];
        }
        EXPECT_TRUE(y.gaps_untouched());
      }
    }
  }
  TestValues<float> nan{NAN}, one{1};
  TestValues<bool> y{true};
  const View x = nan.view(DType::f32, {}), z = one.view(DType::f32, {});
  const View out = y.view(DType::boolean, {});
  for (int op = 0; op < kCompareCount; ++op) {
    compare_forward({Compare(op), x, z, out});
    EXPECT_EQ(y[0], Compare(op) == Compare::ne);
  }
}

TEST(Compare, WithANumber) {
  for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
    for (Layout layout : {Layout::contiguous, Layout::transposed, Layout::step2}) {
      Array a(DType(dtype), {7, 50}, layout), y(DType::boolean, {7, 50}, layout);
      a.random(1, 0, 4);
      compare_forward({Compare::eq, a.view(), kNoView, y.view(), 1});
      for (int64_t i = 0; i < y.numel(); ++i) {
        ASSERT_EQ(y[i] != 0, a[i] == 1) << to_string(DType(dtype));
      }
      compare_forward({Compare::gt, a.view(), kNoView, y.view(), 1});
      for (int64_t i = 0; i < y.numel(); ++i) {
        ASSERT_EQ(y[i] != 0, a[i] > 1) << to_string(DType(dtype));
      }
      EXPECT_TRUE(y.gaps_untouched());
    }
  }
}

TEST(Pointwise, BitsDoNotDependOnThreadsAndInPlaceWorks) {
  for (DType dtype : floating_dtypes()) {
    const int64_t n = every_combination() ? 100003 : 10003;
    Array x(dtype, {n}), first(dtype, {n});
    x.random(1);
    set_threads(1);
    unary_forward({.op = Unary::gelu, .x = x.view(), .y = first.view()});
    for (int count : {2, 4}) {
      set_threads(count);
      Array again(dtype, {n});
      again.random(1);
      unary_forward({.op = Unary::gelu, .x = again.view(), .y = again.view()});
      EXPECT_EQ(again.bytes(), first.bytes());
    }
  }
  set_threads(0);
}

TEST(Pointwise, BadArgumentsAreErrors) {
  Array a(DType::f32, {3}), b(DType::f64, {3}), c(DType::f32, {4}), i(DType::i64, {3});
  EXPECT_THROW(unary_forward({.op = Unary::exp, .x = a.view(), .y = b.view()}), Error);
  EXPECT_THROW(unary_forward({.op = Unary::exp, .x = a.view(), .y = c.view()}), Error);
  EXPECT_THROW(unary_forward({.op = Unary::exp, .x = i.view(), .y = i.view()}), Error);
  EXPECT_THROW(compare_forward({Compare::eq, a.view(), a.view(), a.view()}), Error);
}

TEST(NarrowerIsas, PointwisePasses) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::pointwise_test
