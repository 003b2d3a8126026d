#include <binade/optim/adamw.h>
#include <binade/optim/loss_scaler.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/optim/parameters.h>

#include <cmath>

#include <tests/support/error_of.h>

namespace binade::optim::loss_scaler_test {
namespace {

// loss = sum(w * x), so the gradient of w is x.
Tensor loss_of(const TestParameters& parameters, const Tensor& x) {
  return sum(cast(parameters.list[0].value, DType::f32) * on_test_device(x));
}

TEST(LossScaler, StepAppliesTheTrueGradient) {
  const TestParameters parameters({{"w", {3}}});
  SGD sgd(parameters.list, {.lr = 1});
  LossScaler scaler({.init_scale = 1024});
  const std::vector<double> before = values_of(parameters.list[0].value);
  scaler.scale(loss_of(parameters, from_values({1, 2, 4}, {3})), 0.5).backward();
  EXPECT_EQ(parameters.list[0].leaf().buffer.at(1), 1024);
  EXPECT_EQ(parameters.list[0].value.grad().at(1), 1);
  EXPECT_EQ(scaler.step(sgd, {.accumulating = true}), StepOutcome::accumulating);
  EXPECT_EQ(scaler.step(sgd, {.divisor = 0.5}), StepOutcome::applied);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(parameters.list[0].value.at(i), before[static_cast<size_t>(i)] - (1 << i), 1e-5);
  }
  EXPECT_EQ(scaler.growth_tracker(), 1);
}

TEST(LossScaler, ClipsTheTrueNorm) {
  const TestParameters parameters({{"w", {2}}});
  SGD sgd(parameters.list, {.lr = 1});
  LossScaler scaler;
  const double before = parameters.list[0].value.at(0);
  scaler.scale(loss_of(parameters, from_values({3, 4}, {2}))).backward();
  EXPECT_EQ(scaler.step(sgd, {.clip_norm = 1}), StepOutcome::applied);
  EXPECT_DOUBLE_EQ(sgd.last_norm(), 5);
  EXPECT_NEAR(parameters.list[0].value.at(0), before - 0.6, 1e-5);
}

TEST(LossScaler, BacksOffUntilTheGradientFits) {
  const TestParameters parameters({{"w", {1}, DType::f16}}, true);
  SGD sgd(parameters.list, {.lr = 1e-3});
  LossScaler scaler;
  int skipped = 0;
  for (int i = 0; i < 10; ++i) {  // the gradient 100 fits f16 up to a scale of 2^9
    scaler.scale(loss_of(parameters, from_values({100}, {1}))).backward();
    skipped += scaler.step(sgd) == StepOutcome::overflow;
  }
  EXPECT_EQ(skipped, 7);
  EXPECT_EQ(scaler.skipped_steps(), 7);
  EXPECT_EQ(scaler.scale(), 0x1p9);
  EXPECT_EQ(sgd.step_count(), 3);
}

TEST(LossScaler, FixedScaleSkipsAndStays) {
  const TestParameters parameters({{"w", {1}}});
  SGD sgd(parameters.list, {.lr = 1});
  LossScaler scaler = LossScaler::fixed(1000);
  scaler.scale(loss_of(parameters, from_values({INFINITY}, {1}))).backward();
  EXPECT_EQ(scaler.step(sgd), StepOutcome::overflow);
  EXPECT_EQ(scaler.scale(), 1000);
  EXPECT_EQ(scaler.skipped_steps(), 1);
}

std::string error_at_floor(double floor,
                           const std::function<void(TestParameters&, LossScaler&)>& f) {
  TestParameters parameters({{"first", {1}}, {"second", {1}}});
  SGD sgd(parameters.list, {.lr = 1});
  LossScaler scaler({.init_scale = floor, .min_scale = floor});
  f(parameters, scaler);
  return error_of([&] { (void)scaler.step(sgd).value(); });
}

TEST(LossScaler, TheErrorAtTheFloorNamesParameterAndCause) {
  const auto backward = [](TestParameters& parameters, LossScaler& scaler, double x) {
    const Tensor loss = loss_of(parameters, from_values({x}, {1}));
    scaler.scale(loss).backward();
  };
  const std::string data = error_at_floor(1, [&](auto& p, auto& s) { backward(p, s, NAN); });
  EXPECT_NE(data.find("gradient of first"), std::string::npos) << data;
  EXPECT_NE(data.find("bad data or forward overflow"), std::string::npos) << data;
  const auto overflow_in_second = [&](auto& p, auto& s) {
    backward(p, s, 1);
    p.set_gradient(1, from_values({INFINITY}, {1}), s.scale());
  };
  const std::string high = error_at_floor(1024, overflow_in_second);
  EXPECT_NE(high.find("gradient of second"), std::string::npos) << high;
  EXPECT_NE(high.find("scale too high"), std::string::npos) << high;
  const std::string forward = error_at_floor(0x1p-24, overflow_in_second);
  EXPECT_NE(forward.find("masked forward overflow"), std::string::npos) << forward;
  const std::string stale = error_at_floor(1024, [&](auto& p, auto& s) {
    backward(p, s, 1);
    p.set_gradient(1, from_values({INFINITY}, {1}), 7);
  });
  EXPECT_NE(stale.find("stale"), std::string::npos) << stale;
}

TEST(LossScaler, OtherPoliciesAtTheFloor) {
  for (AtFloor policy : {AtFloor::skip, AtFloor::fp32, AtFloor::clip}) {
    const TestParameters parameters({{"w", {2}}});
    SGD sgd(parameters.list, {.lr = 0});
    LossScaler scaler({.init_scale = 1, .min_scale = 1, .at_floor = policy});
    parameters.set_gradient(0, from_values({NAN, -INFINITY}, {2}));
    const bool clips = policy == AtFloor::clip;
    EXPECT_EQ(scaler.step(sgd), clips ? StepOutcome::applied : StepOutcome::overflow);
    EXPECT_EQ(scaler.needs_full_precision(), policy == AtFloor::fp32);
    EXPECT_EQ(scaler.skipped_steps(), clips ? 0 : 1);
    EXPECT_EQ(scaler.scale(), 1);
    EXPECT_TRUE(std::isfinite(parameters.list[0].value.at(0)));
  }
}

TEST(LossScaler, StateRoundTrip) {
  const TestParameters parameters({{"w", {1}}});
  SGD sgd(parameters.list, {.lr = 0});
  LossScaler scaler;
  for (double x : {1.0, double{INFINITY}, 1.0, 1.0}) {
    parameters.set_gradient(0, from_values({x}, {1}));
    (void)scaler.step(sgd);
  }
  LossScaler other;
  other.load_state(scaler.state_scalars());
  EXPECT_EQ(other.scale(), 0x1p15);
  EXPECT_EQ(other.growth_tracker(), 2);
  EXPECT_EQ(other.skipped_steps(), 1);
  EXPECT_THROW(other.load_state({{"scale", 1}}), Error);
}

TEST(LossScaler, RefusesWhatIsNoLoss) {
  LossScaler scaler;
  EXPECT_THROW((void)scaler.scale(Tensor()), Error);
  EXPECT_THROW((void)scaler.scale(ones({2})), Error);
  EXPECT_THROW((void)scaler.scale(ones({1}), NAN), Error);
}

}  // namespace
}  // namespace binade::optim::loss_scaler_test
