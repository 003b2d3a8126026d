#include <binade/optim/schedule.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/optim/parameters.h>

#include <cmath>
#include <numbers>

namespace binade::optim {
namespace {

using std::numbers::pi;

TEST(Schedule, ClosedForms) {
  const double b = 0.1;
  const StepLr step(b, {.step_size = 3, .gamma = 0.5});
  const MultiStepLr multi(b, {.milestones = {2, 4, 5}, .gamma = 0.1});
  const ExponentialLr exponential(b, {.gamma = 0.9});
  const CosineAnnealing cosine(b, {.t_max = 10, .eta_min = 0.01});
  const CosineWarmRestarts restarts(b, {.t_0 = 4, .t_mult = 2});
  const LinearLr linear(b, {.start_factor = 0.2, .end_factor = 0.8, .total_iters = 4});
  const PolynomialLr polynomial(b, {.total_iters = 8, .power = 2});
  const WarmupCosine warmup(b, {.warmup = 4, .total = 12, .min_ratio = 0.1});
  EXPECT_EQ(Constant(b).rate(1000), b);
  EXPECT_DOUBLE_EQ(step.rate(2), b);
  EXPECT_DOUBLE_EQ(step.rate(7), b / 4);
  EXPECT_DOUBLE_EQ(multi.rate(1), b);
  EXPECT_DOUBLE_EQ(multi.rate(4), b * 0.01);
  EXPECT_DOUBLE_EQ(exponential.rate(20), b * std::pow(0.9, 20));
  EXPECT_DOUBLE_EQ(cosine.rate(0), b);
  EXPECT_DOUBLE_EQ(cosine.rate(3), 0.01 + 0.09 * (1 + std::cos(0.3 * pi)) / 2);
  EXPECT_DOUBLE_EQ(cosine.rate(10), 0.01);
  EXPECT_NEAR(cosine.rate(13), cosine.rate(7), 1e-15);
  EXPECT_DOUBLE_EQ(restarts.rate(4), b);
  EXPECT_DOUBLE_EQ(restarts.rate(8), b / 2);
  EXPECT_DOUBLE_EQ(restarts.rate(12), b);
  EXPECT_DOUBLE_EQ(linear.rate(1), b * 0.35);
  EXPECT_DOUBLE_EQ(linear.rate(9), b * 0.8);
  EXPECT_DOUBLE_EQ(polynomial.rate(2), b * 0.75 * 0.75);
  EXPECT_DOUBLE_EQ(polynomial.rate(9), 0);
  EXPECT_DOUBLE_EQ(warmup.rate(0), b / 4);
  EXPECT_DOUBLE_EQ(warmup.rate(3), b);
  EXPECT_DOUBLE_EQ(warmup.rate(8), b * (0.1 + 0.9 * 0.5));
  EXPECT_DOUBLE_EQ(warmup.rate(100), b * 0.1);
}

TEST(Schedule, MovesOnlyWithAppliedSteps) {
  const TestParameters parameters({{"a", {2}}, {"b", {2}}});
  const auto first = parameters.list.filter([](const Parameter& p) { return p.name == "a"; });
  const auto second = parameters.list.filter([](const Parameter& p) { return p.name == "b"; });
  Sgd optimizer({{first}, {second, 0.5}}, {.lr = 1});
  WarmupCosine schedule(optimizer, {.warmup = 2, .total = 10});
  EXPECT_EQ(optimizer.lr(0), 0.5);
  EXPECT_EQ(optimizer.lr(1), 0.25);
  schedule.advance(StepOutcome::overflow);
  schedule.advance(StepOutcome::accumulating);
  EXPECT_EQ(schedule.step(), 0);
  EXPECT_EQ(optimizer.lr(0), 0.5);
  schedule.advance(StepOutcome::applied);
  EXPECT_EQ(optimizer.lr(0), 1);
  EXPECT_EQ(optimizer.lr(1), 0.5);
  schedule.set_step(10);
  EXPECT_EQ(optimizer.lr(0), 0);
}

TEST(Schedule, RefusesBadOptions) {
  EXPECT_THROW(StepLr(0.1, {.step_size = 0}), Error);
  EXPECT_THROW(WarmupCosine(0.1, {.warmup = 5, .total = 4}), Error);
  EXPECT_THROW(CosineAnnealing(0.1, {.t_max = 0}), Error);
  EXPECT_NO_THROW(WarmupCosine(0.1, {.warmup = 0, .total = 0}));
}

}  // namespace
}  // namespace binade::optim
