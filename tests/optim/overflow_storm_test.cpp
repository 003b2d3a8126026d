// Storms of overflows: non-finite values never reach a weight, the scale ends at its floor, and the
// one error says where and why.
#include <binade/core/autograd/hooks.h>
#include <binade/optim/adamw.h>
#include <binade/optim/loss_scaler.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/optim/parameters.h>

#include <cmath>
#include <functional>

namespace binade::optim::overflow_storm_test {
namespace {

constexpr int kBackoffs = 40;  // from 2^16 to 2^-24
// One storm has this length on every device; the others are shorter if kernels are executed on the
// host.
constexpr int kLong = 2000;
const int kUsual = kernels::every_combination() ? kLong : 60;

// A model of two layers in f16 with masters and Adam's moments.
struct Storm {
  TestParameters parameters{{{"encoder.fc1.weight", {4, 3}, DType::f16},
                             {"encoder.fc1.bias", {4}, DType::f16, true},
                             {"head.weight", {4}, DType::f16}},
                            true};
  AdamW adam{parameters.list, {.lr = 0.1f, .weight_decay = 0.1f}};
  LossScaler scaler;
  int errors = 0, overflows = 0, first_error = -1;
  std::string message;

  std::string state() const {
    std::string all;
    for (const Arena::Segment& segment : parameters.arena->segments()) {
      all += bytes_of(segment.values) + bytes_of(segment.masters);
    }
    for (const auto& [name, tensor] : adam.state_tensors()) {
      for (double value : values_of(tensor)) {
        all += text(name, value, " ");
      }
    }
    return all;
  }

  Tensor loss() const {
    Tensor sum_of_squares;
    for (const Parameter& parameter : parameters.list) {
      const Tensor w = cast(parameter.value, DType::f32);
      sum_of_squares = sum_of_squares.defined() ? sum_of_squares + sum(w * w) : sum(w * w);
    }
    return sum_of_squares;
  }

  // Runs one step; an error is caught, and with `skip` the storm continues.
  void step(const Tensor& loss, int i) {
    scaler.scale(loss).backward();
    try {
      overflows += scaler.step(adam).value() == StepOutcome::overflow;
    } catch (const Error& error) {
      ++errors;
      first_error = errors == 1 ? i : first_error;
      message = error.what();
      scaler.set_at_floor(AtFloor::skip);
    }
  }

  // Runs the storm, and checks the state after it.
  void rage(int steps, const std::function<Tensor()>& make_loss) {
    const std::string before = state();
    for (int i = 0; i < steps; ++i) {
      step(make_loss(), i);
    }
    EXPECT_EQ(state(), before);
    EXPECT_EQ(scaler.scale(), 0x1p-24);
    EXPECT_EQ(errors, 1);
    EXPECT_EQ(first_error, kBackoffs);  // the first overflow at the floor
    EXPECT_EQ(overflows, steps - 1);
    EXPECT_EQ(scaler.skipped_steps(), steps - 1);
    EXPECT_EQ(adam.step_count(), 0);
    // After the storm the next good gradient is applied.
    scaler.scale(loss()).backward();
    EXPECT_EQ(scaler.step(adam), StepOutcome::applied);
    EXPECT_NE(state(), before);
  }

  void expect_in_message(std::initializer_list<const char*> parts) const {
    for (const char* part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
    }
  }
};

TEST(OverflowStorm, OfInfiniteGradientsEndsInOneErrorAtTheFloor) {
  Storm storm;
  HookHandle hook;
  Tensor w = storm.parameters.list[2].value;
  int calls = 0;
  hook = on_gradient(w, [&calls](Tensor& g) {
    if (calls++ < kLong) {
      g = g + INFINITY;
    }
  });
  storm.rage(kLong, [&] { return storm.loss(); });
  storm.expect_in_message({"head.weight", "layer head", "forward overflow", "5.96"});
}

TEST(OverflowStorm, OfInfiniteLossesIsAForwardOverflow) {
  Storm storm;
  storm.rage(kUsual, [&] { return storm.loss() * INFINITY; });
  storm.expect_in_message({"encoder.fc1.weight", "layer encoder.fc1", "forward overflow"});
}

TEST(OverflowStorm, OfNansIsBadData) {
  Storm storm;
  storm.rage(kUsual, [&] { return storm.loss() * NAN; });
  storm.expect_in_message({"encoder.fc1.weight", "layer encoder.fc1", "bad data"});
}

TEST(OverflowStorm, WithAHighFloorIsAScaleTooHigh) {
  Storm storm;
  storm.scaler = LossScaler({.min_scale = 0x1p10});
  for (int i = 0; i < 20 && storm.errors == 0; ++i) {
    storm.step(storm.loss() * 1000.0, i);  // gradients near 1000 bear a scale up to 2^6
  }
  EXPECT_EQ(storm.first_error, 6);
  storm.expect_in_message({"scale too high", "1024"});
}

TEST(OverflowStorm, AfterAForeignBackwardIsStaleGradients) {
  Storm storm;
  storm.scaler = LossScaler({.init_scale = 1024, .min_scale = 1024});
  storm.loss().backward();
  (sum(cast(storm.parameters.list[0].value, DType::f32)) * INFINITY).backward();
  EXPECT_THROW((void)storm.scaler.step(storm.adam).value(), Error);
  Storm other;  // the scaler went backward once, but not for these gradients
  other.scaler = LossScaler({.init_scale = 1024, .min_scale = 1024});
  const Tensor w = cast(other.parameters.list[2].value, DType::f32);
  other.scaler.scale(sum(w)).backward();
  (sum(cast(other.parameters.list[0].value, DType::f32)) * INFINITY).backward();
  try {
    (void)other.scaler.step(other.adam).value();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("stale gradients"), std::string::npos) << error.what();
  }
}

TEST(OverflowStorm, PoliciesSkipFullPrecisionAndClip) {
  for (AtFloor policy : {AtFloor::skip, AtFloor::fp32, AtFloor::clip}) {
    Storm storm;
    storm.scaler = LossScaler({.init_scale = 4, .min_scale = 1, .at_floor = policy});
    const std::string before = storm.state();
    for (int i = 0; i < 5; ++i) {
      storm.step(storm.loss() * INFINITY, i);
    }
    EXPECT_EQ(storm.errors, 0);
    EXPECT_EQ(storm.scaler.scale(), 1);
    EXPECT_EQ(storm.scaler.needs_full_precision(), policy == AtFloor::fp32);
    const bool clips = policy == AtFloor::clip;
    EXPECT_EQ(storm.overflows, clips ? 2 : 5);
    EXPECT_EQ(storm.state() == before, !clips);
    for (double value : values_of(storm.parameters.list[0].value)) {
      EXPECT_TRUE(std::isfinite(value));
    }
    // The request for full precision survives a checkpoint.
    LossScaler resumed;
    resumed.load_state(storm.scaler.state_scalars());
    EXPECT_EQ(resumed.needs_full_precision(), policy == AtFloor::fp32);
  }
}

// Least squares in f16, in which one step in ten overflows.
void expect_to_converge(const LossScalerOptions& options, int steps) {
  manual_seed(3);
  const TestParameters parameters({{"w", {8}, DType::f16}}, true);
  SGD sgd(parameters.list, {.lr = 0.1f});
  LossScaler scaler(options);
  const Tensor target = on_test_device(randn({8}));
  const auto distance = [&] {
    const Tensor error = cast(parameters.list[0].value, DType::f32) - target;
    return sum(error * error);
  };
  const double before = distance().item();
  uint32_t random = 1;
  int hits = 0;
  for (int i = 0; i < steps; ++i) {
    random = random * 1664525 + 1013904223;
    const bool hit = random >> 8 < (1u << 24) / 10;
    hits += hit;
    scaler.scale(hit ? distance() * INFINITY : distance()).backward();
    const StepOutcome outcome = scaler.step(sgd);
    EXPECT_TRUE(!hit || outcome == StepOutcome::overflow);
  }
  EXPECT_GT(hits, steps / 20);
  EXPECT_LT(distance().item(), 1e-4 * before);
}

TEST(OverflowStorm, TenPercentOfRandomOverflowsStillConverge) {
  expect_to_converge({}, 200);
  expect_to_converge({.growth_interval = 8},
                     kUsual / 2 + 70);  // on the CPU past the floor otherwise
}

}  // namespace
}  // namespace binade::optim::overflow_storm_test
