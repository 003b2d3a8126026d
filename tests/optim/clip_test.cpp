#include <binade/optim/clip.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/optim/parameters.h>

#include <cmath>

namespace binade::optim::clip_test {
namespace {

TestParameters some_gradients() {
  TestParameters parameters({{"a", {3}}, {"b", {2, 2}}, {"none", {5}}, {"empty", {0}}});
  parameters.set_gradient(0, from_values({1, -2, 0.5}, {3}), 1);
  parameters.set_gradient(1, from_values({4, 0, -3, 1}, {2, 2}), 256);
  parameters.set_gradient(3, from_values(std::span<const double>(), {0}));
  return parameters;
}

TEST(GradNorm, IsOfTrueGradients) {
  const TestParameters parameters = some_gradients();
  EXPECT_DOUBLE_EQ(grad_norm(parameters.list), std::sqrt(1 + 4 + 0.25 + 16 + 9 + 1));
  EXPECT_DOUBLE_EQ(grad_norm(parameters.list, 1), 11.5);
  EXPECT_NEAR(grad_norm(parameters.list, 3), std::cbrt(1 + 8 + 0.125 + 64 + 27 + 1), 1e-14);
  EXPECT_EQ(grad_norm(parameters.list, kInfinityNorm), 4);
  EXPECT_THROW(grad_norm(parameters.list, 0), Error);
}

TEST(ClipGradNorm, ScalesAllGradientsThroughTheirTags) {
  const TestParameters parameters = some_gradients();
  const double norm = grad_norm(parameters.list);
  const double before = parameters.list[1].leaf().buffer.at(0);
  EXPECT_EQ(clip_grad_norm(parameters.list, 100), norm);
  EXPECT_EQ(parameters.list[1].value.grad().at(0), 4);
  EXPECT_EQ(clip_grad_norm(parameters.list, 0.5), norm);
  const double factor = 0.5 / (norm + 1e-6);
  EXPECT_NEAR(parameters.list[0].value.grad().at(1), -2 * factor, 1e-6);
  EXPECT_NEAR(parameters.list[1].value.grad().at(0), 4 * factor, 1e-6);
  EXPECT_EQ(parameters.list[1].leaf().buffer.at(0), before);
  EXPECT_NEAR(grad_norm(parameters.list), 0.5, 1e-6);
}

TEST(ClipGradNorm, SmallHalfGradientsSurvive) {
  const TestParameters parameters({{"a", {2}, DType::f16}}, true);
  parameters.set_gradient(0, from_values({0x1p-20, 0x1p-24}, {2}), 1);
  clip_grad_norm(parameters.list, 0x1p-26);
  EXPECT_GT(parameters.list[0].value.grad().at(1), 0);  // below the smallest f16 by now
}

TEST(ClipGradNorm, LeavesGradientsThatAreNotFinite) {
  const TestParameters parameters = some_gradients();
  parameters.set_gradient(0, from_values({1, INFINITY, 2}, {3}));
  EXPECT_EQ(clip_grad_norm(parameters.list, 1), INFINITY);
  EXPECT_EQ(parameters.list[0].value.grad().at(2), 2);
  parameters.set_gradient(0, from_values({1, NAN, 2}, {3}));
  EXPECT_TRUE(std::isnan(clip_grad_norm(parameters.list, 1)));
  EXPECT_TRUE(std::isnan(grad_norm(parameters.list, kInfinityNorm)));
  EXPECT_THROW(clip_grad_norm(parameters.list, 1, 2, true), Error);
  EXPECT_EQ(parameters.list[0].value.grad().at(2), 2);
}

TEST(ClipGradNorm, ZeroLimitGivesZeroGradients) {
  const TestParameters parameters = some_gradients();
  clip_grad_norm(parameters.list, 0);
  EXPECT_EQ(grad_norm(parameters.list), 0);
  EXPECT_EQ(clip_grad_norm(parameters.list, 1), 0);
}

// In the pass of an optimizer: a norm within the limit is not scaled up to it.
TEST(ClipOfAStep, LeavesANormWithinTheLimit) {
  for (const double limit : {5.5, 1e6}) {
    const TestParameters parameters({{"a", {2}}});
    SGD optimizer(parameters.list, {.lr = 1});
    parameters.set_gradient(0, from_values({3, -4}, {2}));
    const std::vector<double> before = values_of(parameters.list[0].value);
    ASSERT_EQ(optimizer.step({.clip_norm = limit}), StepOutcome::applied);
    EXPECT_EQ(optimizer.last_norm(), 5);
    EXPECT_FLOAT_EQ(parameters.list[0].value.at(0), before[0] - 3);
    EXPECT_FLOAT_EQ(parameters.list[0].value.at(1), before[1] + 4);
  }
}

TEST(ClipGradValue, ClampsTrueGradients) {
  const TestParameters parameters = some_gradients();
  parameters.set_gradient(0, from_values({NAN, -INFINITY, 0.5}, {3}));
  clip_grad_value(parameters.list, 0.75);
  EXPECT_TRUE(std::isnan(parameters.list[0].value.grad().at(0)));
  EXPECT_EQ(parameters.list[0].value.grad().at(1), -kInfinityNorm);
  EXPECT_EQ(parameters.list[0].value.grad().at(2), 0.5);
  EXPECT_EQ(values_of(parameters.list[1].value.grad()),
            (std::vector<double>{0.75, 0, -0.75, 0.75}));
}

}  // namespace
}  // namespace binade::optim::clip_test
