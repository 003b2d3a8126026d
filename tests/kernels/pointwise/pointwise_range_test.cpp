// Tests values and slopes over the whole range of every floating dtype: all values of f16 and bf16,
// values of f32 and f64 in geometric steps up to the largest, infinities and NaN. A formula that is
// right near 0 may overflow, cancel or multiply infinity by 0 far from it. If BINADE_LONG is set, a
// million values of f32 and f64 are tried.
#include <binade/kernels/pointwise/pointwise.h>
#include <gtest/gtest.h>
#include <tests/kernels/pointwise/unary_cases.h>
#include <tests/kernels/support/layouts.h>
#include <tests/kernels/support/test_device.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <vector>

namespace binade::kernels::pointwise_range_test {
namespace {

using Real = long double;
constexpr double kInf = std::numeric_limits<double>::infinity();

double largest(DType dtype) {
  switch (dtype) {
    case DType::f64: return std::numeric_limits<double>::max();
    case DType::f32: return std::numeric_limits<float>::max();
    case DType::f16: return 65504;
    default: return 0x1.fep127;
  }
}

// The values to try; on the emulated device, every 61st value of f16 and bf16.
std::vector<double> range_of(DType dtype) {
  std::vector<double> x = {0, -0.0, kInf, -kInf, std::nan(""), largest(dtype), -largest(dtype)};
  if (is_half(dtype)) {
    for (uint32_t bits = 0; bits < 65536; bits += every_combination() ? 1 : 61) {
      const auto word = static_cast<uint16_t>(bits);
      x.push_back(dtype == DType::f16 ? static_cast<double>(std::bit_cast<half>(word))
                                      : static_cast<double>(std::bit_cast<bfloat16>(word)));
    }
    return x;
  }
  const bool is_long = std::getenv("BINADE_LONG") != nullptr;
  const double factor = dtype == DType::f32 ? (is_long ? 1.0003 : 1.01) : (is_long ? 1.002 : 1.05);
  for (double a = dtype == DType::f32 ? 1e-30 : 1e-200; a < largest(dtype); a *= factor) {
    const double value = dtype == DType::f32 ? static_cast<double>(static_cast<float>(a)) : a;
    x.push_back(value);
    x.push_back(-value);
  }
  return x;
}

// Compares within `ulps` units in the last place of max(|expected|, floor). At the end of the range
// a result may be infinite or finite. A product of x and a subnormal factor has x times its error.
bool close(DType dtype, double x, double got, Real expected, double ulps, double floor) {
  const auto nearest = static_cast<double>(expected);
  if (std::isnan(nearest) || std::isnan(got)) {
    return std::isnan(nearest) && std::isnan(got);
  }
  const double edge = 0.99 * largest(dtype);
  if (std::fabs(nearest) > edge || std::fabs(got) > edge) {
    return std::fabs(nearest) > edge && std::fabs(got) > edge && (nearest > 0) == (got > 0);
  }
  const Real least = dtype == DType::f16    ? 0x1p-24L
                     : dtype == DType::bf16 ? 0x1p-133L
                     : dtype == DType::f32  ? 0x1p-149L
                                            : 0x1p-1074L;
  const Real times = std::fabs(x) < 1000 ? std::fmax(1, std::fabs(x)) : 1;
  const Real scale = std::fmax(std::fabs(expected), static_cast<Real>(floor));
  return std::fabs(got - expected) <= ulps * std::fmax(scale * epsilon(dtype), least * times);
}

struct Slope {
  Unary op;
  Real (*slope)(Real x);
  double below, above;  // limits at minus infinity and at infinity
  double alpha = 0, beta = 0;
};

Real logistic_of(Real x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
Real gelu_slope(Real x) {
  const Real density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Real>);
  return std::erfc(-x / std::numbers::sqrt2_v<Real>) / 2 + x * density;
}
Real gelu_tanh_slope(Real x) {
  const Real k = 2 * std::sqrt(2 / std::numbers::pi_v<Real>), z = k * (x + 0.044715L * x * x * x);
  return logistic_of(z) + x * logistic_of(z) * logistic_of(-z) * k * (1 + 3 * 0.044715L * x * x);
}
Real mish_slope(Real x) {  // tanh(s) + x (1 - tanh(s)^2) sigmoid(x), s = softplus(x)
  const Real s = std::fmax(x, Real(0)) + std::log1p(std::exp(-std::fabs(x)));
  const Real inverse = 1 / std::cosh(s);
  return std::tanh(s) + x * inverse * inverse * logistic_of(x);
}

std::vector<Slope> slopes() {
  return {
      {Unary::silu, [](Real x) { return logistic_of(x) * (1 + x * logistic_of(-x)); }, 0, 1},
      {Unary::gelu, gelu_slope, 0, 1},
      {Unary::gelu_tanh, gelu_tanh_slope, 0, 1},
      {Unary::mish, mish_slope, 0, 1},
      {Unary::softplus, [](Real x) { return x > 20 ? 1 : logistic_of(x); }, 0, 1, 1, 20},
      {Unary::log_sigmoid, [](Real x) { return logistic_of(-x); }, 1, 0},
      {Unary::elu, [](Real x) { return x > 0 ? 1 : 1.5L * std::exp(x); }, 0, 1, 1.5},
      {Unary::selu,
       [](Real x) { return 1.0507009873554805L * (x > 0 ? 1 : 1.6732632423543773L * std::exp(x)); },
       0, 1.0507009873554805},
      {Unary::celu, [](Real x) { return x > 0 ? 1 : std::exp(x / 1.5L); }, 0, 1, 1.5},
      {Unary::softsign, [](Real x) { return 1 / (1 + std::fabs(x)) / (1 + std::fabs(x)); }, 0, 0},
      {Unary::hardsigmoid, [](Real x) { return x > -3 && x < 3 ? 1 / 6.0L : 0; }, 0, 0},
      {Unary::leaky_relu, [](Real x) { return x > 0 ? 1 : 0.25L; }, 0.25, 1, 0.25},
      {Unary::hardswish, [](Real x) { return x <= -3  ? 0
                                             : x >= 3 ? 1
                                                      : x / 3 + 0.5L; }, 0, 1},
      {Unary::hardtanh, [](Real x) { return Real(!(x <= -1 || x >= 2)); }, 0, 0, -1, 2},
      {Unary::erf,
       [](Real x) { return 2 / std::sqrt(std::numbers::pi_v<Real>) * std::exp(-x * x); }, 0, 0},
  };
}

TEST(PointwiseRange, Slopes) {
  for (const Slope& c : slopes()) {
    for (DType dtype : floating_dtypes()) {
      const std::vector<double> values = range_of(dtype);
      const auto n = static_cast<int64_t>(values.size());
      Array x(dtype, {n}), dy(dtype, {n}), dx(dtype, {n});
      for (int64_t i = 0; i < n; ++i) {
        x.set(i, values[static_cast<size_t>(i)]);
        dy.set(i, 1);
      }
      unary_backward({c.op, x.view(), dy.view(), dx.view(), c.alpha, c.beta});
      int wrong = 0;
      for (int64_t i = 0; i < n; ++i) {
        const Real expected = x[i] == kInf ? c.above : x[i] == -kInf ? c.below : c.slope(x[i]);
        const double ulps = is_half(dtype) ? 1 : 32;
        if (!close(dtype, x[i], dx[i], expected, ulps, 0.25) && ++wrong <= 3) {
          ADD_FAILURE() << to_string(c.op) << " " << to_string(dtype) << ": the slope at " << x[i]
                        << " is " << dx[i] << ", exactly " << expected;
        }
      }
      EXPECT_EQ(wrong, 0) << to_string(c.op) << " " << to_string(dtype);
    }
  }
}

TEST(PointwiseRange, Values) {
  for (const UnaryCase& c : unary_cases()) {
    for (DType dtype : {DType::f32, DType::f64}) {  // AllHalves covers f16 and bf16
      const std::vector<double> values = range_of(dtype);
      const auto n = static_cast<int64_t>(values.size());
      Array x(dtype, {n}), y(dtype, {n});
      for (int64_t i = 0; i < n; ++i) {
        x.set(i, values[static_cast<size_t>(i)]);
      }
      unary_forward({c.op, x.view(), y.view(), c.alpha, c.beta});
      int wrong = 0;
      for (int64_t i = 0; i < n; ++i) {
        if (!close(dtype, x[i], y[i], c.f(x[i]), 2 * c.ulps, c.floor) && ++wrong <= 3) {
          ADD_FAILURE() << to_string(c.op) << " " << to_string(dtype) << " of " << x[i] << " is "
                        << y[i] << ", exactly " << c.f(x[i]);
        }
      }
      EXPECT_EQ(wrong, 0) << to_string(c.op) << " " << to_string(dtype);
    }
  }
}

}  // namespace
}  // namespace binade::kernels::pointwise_range_test
