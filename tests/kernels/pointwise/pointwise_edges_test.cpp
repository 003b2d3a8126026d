// Tests values and gradients at the edges of formulas, as PyTorch 2.15 gives them: zeros of both
// signs, infinities, NaN, kinks. pointwise_range_test.cpp tests whole ranges.
#include <binade/kernels/pointwise/pointwise.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/layouts.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace binade::kernels::pointwise_edges_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi, kLn2 = std::numbers::ln2;

// The sign of zero matters.
void expect_same(double got, double expected, DType dtype, const std::string& what) {
  const double tolerance = 4 * epsilon(dtype) * std::fabs(expected);
  const bool right = std::isnan(expected)   ? std::isnan(got)
                     : std::isinf(expected) ? got == expected
                     : expected == 0 ? got == 0 && std::signbit(got) == std::signbit(expected)
                                     : std::fabs(got - expected) <= tolerance;
  EXPECT_TRUE(right) << what << " " << to_string(dtype) << " is " << got << ", expected "
                     << expected;
}

struct UnaryEdge {
  Unary op;
  double x, y, slope;
  double alpha = 0;
};
constexpr UnaryEdge kUnaryEdges[] = {
    {Unary::selu, 0, 0, 1.7580993408473766},
    {Unary::selu, -0.0, -0.0, 1.7580993408473766},
    {Unary::selu, kInf, kInf, 1.0507009873554805},
    {Unary::selu, -kInf, -1.7580993408473766, 0},
    {Unary::celu, 0, 0, 1, 0.5},
    {Unary::celu, -0.0, -0.0, 1, 0.5},
    {Unary::celu, kInf, kInf, 1, 0.5},
    {Unary::celu, -kInf, -0.5, 0, 0.5},
    {Unary::celu, 0.5, 0.5, 1, -2},
    {Unary::softsign, -0.0, -0.0, 1},
    {Unary::softsign, 3, 0.75, 0.0625},
    {Unary::softsign, kInf, kNan, 0},  // PyTorch's slope is NaN here; ours is the limit, 0
    {Unary::softsign, -kInf, kNan, 0},
    {Unary::hardsigmoid, -3, 0, 0},
    {Unary::hardsigmoid, 3, 1, 0},
    {Unary::hardsigmoid, 0, 0.5, 1.0 / 6},
    {Unary::hardsigmoid, kInf, 1, 0},
    {Unary::hardsigmoid, -kInf, 0, 0},
    {Unary::hardsigmoid, kNan, kNan, 0},
    {Unary::exp2, 3, 8, 8 * kLn2},
    {Unary::exp2, -14, 0x1p-14, 0x1p-14 * kLn2},
    {Unary::exp2, kInf, kInf, kInf},
    {Unary::exp2, -kInf, 0, 0},
    {Unary::log2, 8, 3, 1 / (8 * kLn2)},
    {Unary::log2, 1, 0, 1 / kLn2},
    {Unary::log2, 0, -kInf, kInf},
    {Unary::log2, -0.0, -kInf, -kInf},
    {Unary::log2, -1, kNan, -1 / kLn2},
    {Unary::log2, kInf, kInf, 0},
};

TEST(PointwiseEdges, Unary) {
  for (DType dtype : floating_dtypes()) {
    for (const UnaryEdge& c : kUnaryEdges) {
      Array x(dtype, {}), y(dtype, {}), dy(dtype, {}), dx(dtype, {});
      x.set(0, c.x);
      dy.set(0, 1);
      unary_forward({.op = c.op, .x = x.view(), .y = y.view(), .alpha = c.alpha});
      const View saved = backward_uses_output(c.op) ? y.view() : x.view();
      unary_backward(
          {.op = c.op, .saved = saved, .dy = dy.view(), .dx = dx.view(), .alpha = c.alpha});
      const std::string at = std::string(to_string(c.op)) + " of " + std::to_string(c.x);
      expect_same(y[0], c.y, dtype, at);
      expect_same(dx[0], c.slope, dtype, "the slope of " + at);
    }
  }
}

struct BinaryEdge {
  Binary op;
  double a, b, y, da, db;
};
constexpr BinaryEdge kBinaryEdges[] = {
    {Binary::atan2, 0, 1, 0, 1, -0.0},
    {Binary::atan2, -0.0, -0.0, -kPi, 0, 0},
    {Binary::atan2, 0, -0.0, kPi, 0, 0},
    {Binary::atan2, 0, 0, 0, 0, 0},
    {Binary::atan2, kInf, kInf, kPi / 4, kNan, kNan},
    {Binary::atan2, -kInf, -kInf, -3 * kPi / 4, kNan, kNan},
    {Binary::atan2, kInf, 1, kPi / 2, 0, kNan},
    {Binary::atan2, 1, kInf, 0, kNan, -0.0},
    {Binary::atan2, kNan, 1, kNan, kNan, kNan},
    {Binary::logaddexp, 0, 0, kLn2, 0.5, 0.5},
    {Binary::logaddexp, kInf, kInf, kInf, kNan, kNan},
    {Binary::logaddexp, -kInf, -kInf, -kInf, kNan, kNan},
    {Binary::logaddexp, kInf, -kInf, kInf, 1, 0},
    {Binary::logaddexp, -kInf, 2, 2, 0, 1},
    {Binary::logaddexp, 2, kInf, kInf, 0, 1},
    {Binary::logaddexp, 1, kNan, kNan, kNan, kNan},
};

TEST(PointwiseEdges, Binary) {
  for (DType dtype : floating_dtypes()) {
    for (const BinaryEdge& c : kBinaryEdges) {
      Array a(dtype, {}), b(dtype, {}), y(dtype, {}), dy(dtype, {}), da(dtype, {}), db(dtype, {});
      a.set(0, c.a);
      b.set(0, c.b);
      dy.set(0, 1);
      binary_forward({c.op, a.view(), b.view(), y.view()});
      binary_backward({c.op, a.view(), b.view(), dy.view(), da.view(), db.view()});
      const std::string at =
          std::string(to_string(c.op)) + " of " + std::to_string(c.a) + ", " + std::to_string(c.b);
      expect_same(y[0], c.y, dtype, at);
      expect_same(da[0], c.da, dtype, "da of " + at);
      expect_same(db[0], c.db, dtype, "db of " + at);
    }
  }
}

// PyTorch's sum of squares overflows or underflows here.
TEST(PointwiseEdges, Atan2FarFromAndNearTheOrigin) {
  for (DType dtype : {DType::f32, DType::f64}) {
    for (double r : {1e-30, 1e30}) {
      Array a(dtype, {}), dy(dtype, {}), da(dtype, {}), db(dtype, {});
      a.set(0, r);
      dy.set(0, 1);
      binary_backward({Binary::atan2, a.view(), a.view(), dy.view(), da.view(), db.view()});
      expect_same(da[0], 1 / (2 * a[0]), dtype, "da");
      expect_same(db[0], -1 / (2 * a[0]), dtype, "db");
    }
  }
}

}  // namespace
}  // namespace binade::kernels::pointwise_edges_test
