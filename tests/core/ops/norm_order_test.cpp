// Tests norm(x, p) in delicate cases: zeros, values whose powers overflow or underflow, infinite
// orders, half precision.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace binade::norm_order_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double norm_of(std::initializer_list<double> x, double p, DType dtype = DType::f64) {
  return norm(from_values(x, {static_cast<int64_t>(x.size())}, dtype), p).item();
}

Tensor gradient_of(std::initializer_list<double> values, double p) {
  Tensor x = from_values(values, {static_cast<int64_t>(values.size())}, DType::f64);
  x.require_grad();
  norm(x, p).backward();
  return x.grad();
}

TEST(NormOrder, OfVectorsWithZeros) {
  EXPECT_EQ(norm_of({0, -2, 0, 3}, 0), 2);
  EXPECT_NEAR(norm_of({0, -4, 9}, 0.5), 25, 1e-12);
  EXPECT_NEAR(norm_of({0, 3, -4, 5}, 3), 6, 1e-12);
  EXPECT_EQ(norm_of({2, 0, 1}, -1), 0);
  EXPECT_EQ(norm_of({2, -0.5, 1}, -kInfinity), 0.5);
  EXPECT_NEAR(norm_of({2, -2}, -1), 1, 1e-12);
  for (double p : {0.0, 0.5, 3.0}) {
    EXPECT_EQ(norm_of({0, 0}, p), 0) << p;
    EXPECT_EQ(norm(zeros({0}, DType::f64), p).item(), 0) << p;
  }
}

TEST(NormOrder, PowersNeitherOverflowNorVanish) {
  EXPECT_NEAR(norm_of({3e30, 4e30, -5e30}, 3, DType::f32) / 6e30, 1, 1e-6);
  EXPECT_NEAR(norm_of({3e-30, 4e-30, -5e-30}, 3, DType::f32) / 6e-30, 1, 1e-6);
  EXPECT_NEAR(norm_of({60000, 60000}, 8, DType::f16) / (60000 * std::pow(2, 0.125)), 1, 1e-3);
  EXPECT_NEAR(norm_of({2e-30, 2e-30}, -3, DType::f32) / (2e-30 / std::cbrt(2)), 1, 1e-6);
}

TEST(NormOrder, InfinitiesAndNan) {
  EXPECT_EQ(norm_of({1, -kInfinity}, 3), kInfinity);
  EXPECT_EQ(norm_of({1, -kInfinity}, 0), 2);
  EXPECT_NEAR(norm_of({1, -kInfinity}, -1), 1, 1e-12);
  for (double p : {0.5, 3.0, -1.0, kInfinity, -kInfinity}) {
    EXPECT_TRUE(std::isnan(norm_of({1, std::nan("")}, p))) << p;
  }
}

TEST(NormOrder, GradientIsZeroAtZero) {
  for (double p : {0.0, 0.5, 1.0, 2.0, 3.0, -1.0}) {
    const Tensor at_zero = gradient_of({0, 0}, p);
    EXPECT_EQ(at_zero.at(0), 0) << p;
    EXPECT_EQ(gradient_of({0, 2}, p).at(0), 0) << p;
  }
  EXPECT_NEAR(gradient_of({0, -4, 9}, 0.5).at(1), -2.5, 1e-12);  // sqrt(25 / 4)
  EXPECT_EQ(gradient_of({2, -1, 1}, -kInfinity).at(1), -0.5);    // shared at a tie
  EXPECT_EQ(gradient_of({3, -4}, 0).at(1), 0);
}

}  // namespace
}  // namespace binade::norm_order_test
