#include <binade/optim/adamw.h>
#include <binade/optim/plateau.h>
#include <binade/optim/schedule.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/optim/parameters.h>

#include <cmath>
#include <numbers>

namespace binade::optim::schedule_test {
namespace {

using std::numbers::pi;

TEST(Schedule, ClosedForms) {
  const double b = 0.1;
  const StepLR step(b, {.step_size = 3, .gamma = 0.5});
  const MultiStepLR multi(b, {.milestones = {2, 4, 5}, .gamma = 0.1});
  const ExponentialLR exponential(b, {.gamma = 0.9});
  const CosineAnnealingLR cosine(b, {.t_max = 10, .eta_min = 0.01});
  const CosineAnnealingWarmRestarts restarts(b, {.t_0 = 4, .t_mult = 2});
  const LinearLR linear(b, {.start_factor = 0.2, .end_factor = 0.8, .total_iters = 4});
  const PolynomialLR polynomial(b, {.total_iters = 8, .power = 2});
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

TEST(Schedule, OneCycleGoesUpAndDown) {
  const OneCycleLR two(9.0, {.max_lr = 1, .total_steps = 101, .pct_start = 0.4});
  EXPECT_DOUBLE_EQ(two.rate(0), 1 / 25.0);
  EXPECT_NEAR(two.rate(39), 1, 2e-3);
  EXPECT_DOUBLE_EQ(two.rate(100), 1 / 25e4);
  EXPECT_DOUBLE_EQ(two.rate(1000), 1 / 25e4);
  EXPECT_DOUBLE_EQ(two.momentum(0), 0.95);
  EXPECT_NEAR(two.momentum(39), 0.85, 1e-3);
  EXPECT_DOUBLE_EQ(two.momentum(100), 0.95);
  const OneCycleLR three(0.0, {.max_lr = 1,
                               .total_steps = 100,
                               .pct_start = 0.25,
                               .cosine = false,
                               .cycle_momentum = false,
                               .three_phase = true});
  EXPECT_DOUBLE_EQ(three.rate(24), 1);
  EXPECT_DOUBLE_EQ(three.rate(12), 1 / 25.0 + (1 - 1 / 25.0) / 2);
  EXPECT_DOUBLE_EQ(three.rate(48), 1 / 25.0);
  EXPECT_DOUBLE_EQ(three.rate(99), 1 / 25e4);
  EXPECT_FALSE(three.drives_momentum());
  EXPECT_THROW(three.momentum(0), Error);
  const OneCycleLR short_rise(1.0, {.max_lr = 1, .total_steps = 10, .pct_start = 0});
  EXPECT_TRUE(std::isfinite(short_rise.rate(0)));
}

TEST(Schedule, OneCycleDrivesTheMomentum) {
  const TestParameters parameters({{"a", {2}}});
  AdamW adam(parameters.list, {});
  OneCycleLR schedule(adam, {.max_lr = 0.5, .total_steps = 20});
  EXPECT_DOUBLE_EQ(adam.lr(), 0.5 / 25);
  EXPECT_DOUBLE_EQ(adam.momentum(), 0.95);
  schedule.set_step(5);
  EXPECT_DOUBLE_EQ(adam.momentum(), 0.85);
  SGD plain(parameters.list, {});
  EXPECT_THROW(OneCycleLR(plain, {.max_lr = 0.5, .total_steps = 20}), Error);
  EXPECT_NO_THROW(OneCycleLR(plain, {.max_lr = 0.5, .total_steps = 20, .cycle_momentum = false}));
}

TEST(ReduceLROnPlateau, LowersTheRateAfterPatience) {
  const TestParameters parameters({{"a", {2}}, {"b", {2}}});
  const auto only = [&](const std::string& name) {
    return parameters.list.filter([&](const Parameter& p) { return p.name == name; });
  };
  SGD optimizer({{only("a")}, {only("b"), 0.5}}, {.lr = 1});
  const ReduceLROnPlateauOptions options{
      .factor = 0.5, .patience = 1, .cooldown = 1, .min_lr = 0.3};
  ReduceLROnPlateau plateau(optimizer, options);
  for (double metric : {3.0, 2.0, 2.0, 2.0}) {
    plateau.advance(metric);
  }
  EXPECT_EQ(optimizer.lr(0), 0.5);
  EXPECT_EQ(optimizer.lr(1), 0.3);
  plateau.advance(NAN);  // in the cooldown
  plateau.advance(NAN);
  EXPECT_EQ(optimizer.lr(0), 0.5);
  SGD other({{only("a")}, {only("b"), 0.5}}, {.lr = 0.5});
  ReduceLROnPlateau resumed(other, options);
  resumed.load_state(plateau.state_scalars());
  EXPECT_EQ(resumed.best(), 2);
  resumed.advance(2.5);
  plateau.advance(2.5);
  EXPECT_EQ(optimizer.lr(0), 0.3);
  EXPECT_EQ(other.lr(0), 0.3);
  EXPECT_THROW(ReduceLROnPlateau(1.0, {.factor = 1}), Error);
  EXPECT_THROW(ReduceLROnPlateau(1.0, {.patience = -1}), Error);
  EXPECT_FALSE(ReduceLROnPlateau(1.0, {}).state_scalars().contains("best"));
}

TEST(Schedule, MovesOnlyWithAppliedSteps) {
  const TestParameters parameters({{"a", {2}}, {"b", {2}}});
  const auto first = parameters.list.filter([](const Parameter& p) { return p.name == "a"; });
  const auto second = parameters.list.filter([](const Parameter& p) { return p.name == "b"; });
  SGD optimizer({{first}, {second, 0.5}}, {.lr = 1});
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
  EXPECT_THROW(StepLR(0.1, {.step_size = 0}), Error);
  EXPECT_THROW(WarmupCosine(0.1, {.warmup = 5, .total = 4}), Error);
  EXPECT_THROW(CosineAnnealingLR(0.1, {.t_max = 0}), Error);
  EXPECT_NO_THROW(WarmupCosine(0.1, {.warmup = 0, .total = 0}));
}

}  // namespace
}  // namespace binade::optim::schedule_test
