// The facts that mixed precision training is based on, shown with real f16 numbers and real
// backward passes.
#include <binade/optim/accumulation.h>
#include <binade/optim/adamw.h>
#include <binade/optim/loss_scaler.h>
#include <binade/optim/schedule.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/optim/parameters.h>

#include <cmath>

namespace binade::optim::precision_truths_test {
namespace {

// A hundred updates of 2^-13 on a weight of 1, where half an ulp of f16 is 2^-11 upwards and 2^-12
// downwards.
double after_small_updates(bool masters) {
  const TestParameters parameters({{"w", {1}, DType::f16}}, masters);
  NoGradGuard guard;
  parameters.list[0].value.copy_(ones({1}));
  if (masters) {
    parameters.arena->segments()[0].masters.fill_(1);
  }
  SGD sgd(parameters.list, {.lr = 0x1p-13});
  for (int i = 0; i < 100; ++i) {
    parameters.set_gradient(0, ones({1}));
    EXPECT_EQ(sgd.step(), StepOutcome::applied);
  }
  return parameters.list[0].value.at(0);
}

TEST(Truths, UpdatesBelowHalfAnUlpNeedAMaster) {
  EXPECT_EQ(after_small_updates(false), 1);
  const double exact = 1 - 100 * 0x1p-13;
  EXPECT_NEAR(after_small_updates(true), exact, 0x1p-12);
}

// The gradient of an f16 weight through a real backward: loss = sum(w x) with x = gradient.
double f16_gradient(double gradient, double scale) {
  const TestParameters parameters({{"w", {1}, DType::f16}}, true);
  LossScaler scaler = LossScaler::fixed(scale);
  const Tensor x = from_values({gradient}, {1});
  scaler.scale(sum(cast(parameters.list[0].value, DType::f32) * on_test_device(x))).backward();
  return parameters.list[0].value.grad().at(0);
}

TEST(Truths, TinyGradientsFlushUnscaledAndSurviveScaled) {
  EXPECT_EQ(f16_gradient(0x1p-25, 1), 0);  // a tie, to even
  EXPECT_EQ(f16_gradient(0x1p-26, 1), 0);
  EXPECT_EQ(f16_gradient(-0x1p-25, 1), 0);
  EXPECT_EQ(f16_gradient(0x1.8p-25, 1), 0x1p-24);
  EXPECT_EQ(f16_gradient(-0x1.004p-25, 1), -0x1p-24);
  EXPECT_EQ(f16_gradient(0x1p-24, 1), 0x1p-24);
  for (double tiny : {0x1p-25, 0x1p-26, -0x1p-25, 0x1.8p-25, -0x1.004p-25, 0x1p-30}) {
    EXPECT_EQ(f16_gradient(tiny, 0x1p16), tiny);
  }
}

TEST(Truths, TinyScaledGradientsReachTheMaster) {
  const TestParameters parameters({{"w", {1}, DType::f16}}, true);
  NoGradGuard guard;
  parameters.arena->segments()[0].masters.fill_(0);
  SGD sgd(parameters.list, {.lr = 1});
  parameters.set_gradient(0, from_values({0x1p-28}, {1}), 0x1p16);
  LossScaler scaler;
  ASSERT_EQ(scaler.step(sgd), StepOutcome::applied);
  EXPECT_EQ(parameters.arena->segments()[0].masters.at(0), -0x1p-28);
}

TEST(Truths, AnOverflowChangesNothingButTheScale) {
  manual_seed(3);
  const TestParameters parameters(
      {{"w", {9, 5}, DType::f16}, {"norm", {5}, DType::f32}, {"b", {5}, DType::bf16}}, true);
  AdamW adam(parameters.list, {.lr = 0.1});
  WarmupCosine schedule(adam, {.warmup = 3, .total = 9});
  LossScaler scaler;
  const auto train = [&](double poison) {
    for (size_t i = 0; i < parameters.list.size(); ++i) {
      const Tensor g = randn(parameters.list[i].value.sizes());
      parameters.set_gradient(i, g * 1e-3, scaler.scale());
    }
    if (poison != 0) {
      NoGradGuard guard;
      slice(parameters.list[1].leaf().buffer, 0, 3, 4).fill_(poison);
    }
    const StepOutcome outcome = scaler.step(adam);
    schedule.advance(outcome);
    return outcome;
  };
  const auto snapshot = [&] {
    std::string bytes;
    for (const Arena::Segment& segment : parameters.arena->segments()) {
      bytes += bytes_of(segment.values);
      bytes += segment.masters.defined() ? bytes_of(segment.masters) : "";
    }
    for (const auto& [name, t] : adam.state_tensors()) {
      for (double value : values_of(t)) {
        bytes += std::to_string(std::bit_cast<uint64_t>(value));
      }
    }
    return bytes;
  };
  ASSERT_EQ(train(0), StepOutcome::applied);
  for (double poison : {double{INFINITY}, -double{INFINITY}, double{NAN}}) {
    const std::string before = snapshot();
    const double scale = scaler.scale(), lr = adam.lr();
    ASSERT_EQ(train(poison), StepOutcome::overflow);
    EXPECT_EQ(snapshot(), before);
    EXPECT_EQ(scaler.scale(), scale / 2);
    EXPECT_EQ(adam.lr(), lr);
    EXPECT_EQ(schedule.step(), 1);
    EXPECT_EQ(adam.step_count(), 1);
    for (const Parameter& parameter : parameters.list) {
      EXPECT_FALSE(parameter.leaf().has_grad);
    }
  }
  const std::string before = snapshot();
  ASSERT_EQ(train(0), StepOutcome::applied);
  EXPECT_NE(snapshot(), before);
  EXPECT_EQ(schedule.step(), 2);
}

// A two-layer net in f64 on 131 samples: one epoch of steps of up to 128 samples, in micro-batches.
std::vector<double> trained(int64_t micro_batch, int64_t micro_batches) {
  manual_seed(11);
  const TestParameters parameters({{"w1", {16, 6}, DType::f64},
                                   {"b1", {16}, DType::f64},
                                   {"w2", {4, 16}, DType::f64},
                                   {"b2", {4}, DType::f64}});
  constexpr int64_t kSamples = 131;
  const Tensor x = on_test_device(randn({kSamples, 6}, DType::f64));
  const Tensor y = on_test_device(argmax(randn({kSamples, 4}), 1));
  AdamW adam(parameters.list, {.lr = 0.05});
  LossScaler scaler;
  for (int epoch = 0; epoch < 3; ++epoch) {
    AccumulationWindow window(micro_batches, micro_batch);
    for (int64_t at = 0; at < kSamples; at += micro_batch) {
      const int64_t end = std::min(at + micro_batch, kSamples);
      const auto& p = parameters.list;
      const Tensor h = tanh(linear(slice(x, 0, at, end), p[0].value, p[1].value));
      const Tensor loss = cross_entropy(linear(h, p[2].value, p[3].value), slice(y, 0, at, end));
      scaler.scale(loss, window.add(end - at)).backward();
      if (end == kSamples) {
        window.close();
      }
      const StepOutcome outcome = scaler.step(
          adam, {.divisor = window.divisor(), .accumulating = !window.full(), .clip_norm = 0.5});
      if (outcome != StepOutcome::accumulating) {
        EXPECT_EQ(outcome, StepOutcome::applied);
        window.reset();
      }
    }
  }
  EXPECT_EQ(adam.step_count(), 6);
  return values_of(parameters.arena->segments()[0].values);
}

TEST(Truths, AccumulationEqualsTheLargeBatch) {
  const std::vector<double> whole = trained(128, 1);
  for (const std::vector<double>& parts : {trained(8, 16), trained(32, 4), trained(64, 2)}) {
    ASSERT_EQ(parts.size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_NEAR(parts[i], whole[i], 1e-12);
    }
  }
}

TEST(Truths, EvaluationSavesNothing) {
  const TestParameters parameters({{"w", {8, 8}, DType::f16}}, true);
  const Tensor x = on_test_device(randn({4, 8}, DType::f16));
  const int64_t before = saved_bytes().live;
  reset_peak_saved_bytes();
  {
    NoGradGuard guard;
    const Tensor y = relu(linear(x, parameters.list[0].value));
    EXPECT_FALSE(y.requires_grad());
    EXPECT_EQ(saved_bytes().live - before, 0);
    EXPECT_EQ(saved_bytes().peak - before, 0);
  }
  const Tensor y = relu(linear(x, parameters.list[0].value));
  EXPECT_GT(saved_bytes().live, before);
}

TEST(AccumulationWindow, WeightsAndErrors) {
  AccumulationWindow window(2, 8);
  EXPECT_THROW(window.divisor(), Error);
  EXPECT_EQ(window.add(8), 1);
  EXPECT_FALSE(window.full());
  EXPECT_EQ(window.add(2), 0.25);
  EXPECT_TRUE(window.full());
  EXPECT_EQ(window.divisor(), 1.25);
  EXPECT_EQ(window.samples(), 10);
  EXPECT_THROW(window.add(8), Error);
  window.reset();
  EXPECT_THROW(window.add(0), Error);
  EXPECT_THROW(AccumulationWindow(0, 8), Error);
}

}  // namespace
}  // namespace binade::optim::precision_truths_test
