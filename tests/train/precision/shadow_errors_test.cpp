// The sums of a shadow's errors on known values.
#include <binade/train/precision/shadow_errors_internal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace binade::train::shadow_errors_test {
namespace {

// Bias and cosine by their formulas.
TEST(ShadowErrors, SumsOfKnownErrors) {
  const auto numbers = [](double first, double second) {
    return Tensor::from(std::vector<double>{first, second}, {2});
  };
  ShadowSums sums;
  sums.add({.low = numbers(2, 1),
            .introduced = numbers(0.5, -0.25),
            .exact = numbers(1, 3),
            .stored = DType::f64});
  const ShadowErrors errors = sums.errors();
  EXPECT_NEAR(errors.bias, 0.25 / 0.75, 1e-15);
  EXPECT_NEAR(errors.cosine, 5 / std::sqrt(5.0 * 10), 1e-15);
}

}  // namespace
}  // namespace binade::train::shadow_errors_test
