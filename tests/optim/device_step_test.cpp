// A step decided by the device equals the step of the CPU: scales, counters, skips and parameters,
// in every precision. Trains on BINADE_TEST_DEVICE; on the CPU it compares the CPU with itself.
#include <binade/optim/accumulation.h>
#include <binade/optim/adagrad.h>
#include <binade/optim/adamw.h>
#include <binade/optim/clip.h>
#include <binade/optim/lamb.h>
#include <binade/optim/lars.h>
#include <binade/optim/loss_scaler.h>
#include <binade/optim/nadam.h>
#include <binade/optim/radam.h>
#include <binade/optim/rmsprop.h>
#include <binade/optim/schedule.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/optim/parameters.h>

#include <cmath>
#include <set>

namespace binade::optim::device_step_test {
namespace {

constexpr int kSteps = 50;

std::vector<ParameterSpec> specs(DType dtype) {
  return {{"conv", {5, 3, 3, 3}, dtype, false, true},
          {"norm", {7}, DType::f32, true},
          {"matrix", {33, 3}, dtype},
          {"bias", {130}, dtype, true}};
}

// A run in which the host provides the gradients and reads no result until the end.
class Training {
 public:
  Training(DType dtype, bool masters, Device device,
           LossScalerOptions options = {.init_scale = 1024, .growth_interval = 7})
      : seeded_((manual_seed(1), true)),
        parameters(specs(dtype), masters, device),
        scaler(options) {}

  // `bad`: a parameter whose gradient overflows, or -1. `missing`: one without a gradient, or -1.
  void give_gradients(int step, int bad, int missing) {
    manual_seed(100 + static_cast<uint64_t>(step));
    Tensor loss;
    for (size_t i = 0; i < parameters.list.size(); ++i) {
      const Tensor& value = parameters.list[i].value;
      Tensor x = randn(value.sizes()) * 0.1;
      if (static_cast<int>(i) == bad) {
        x.detach().reshape({-1}).fill_(step % 2 ? INFINITY : NAN);
      }
      if (static_cast<int>(i) != missing) {
        const Tensor part = sum(cast(value, DType::f32) * x.to(value.device()));
        loss = loss.defined() ? loss + part : part;
      }
    }
    scaler.scale(loss).backward();
  }

 private:
  bool seeded_;

 public:
  TestParameters parameters;
  LossScaler scaler;
};

int bad_at(int step) {
  const std::set<int> overflows = {3, 4, 12, 30, 31, 32};
  return overflows.contains(step) ? step % 4 : -1;
}

void expect_same_values(const Training& got, const Training& expected, double bound) {
  for (size_t i = 0; i < got.parameters.list.size(); ++i) {
    const std::vector<double> a = values_of(got.parameters.list[i].value);
    const std::vector<double> b = values_of(expected.parameters.list[i].value);
    for (size_t k = 0; k < a.size(); ++k) {
      ASSERT_NEAR(a[k], b[k], bound * (1 + std::abs(b[k])))
          << got.parameters.list[i].name << " element " << k;
    }
  }
}

template <class MakeOptimizer>
void expect_equivalent(MakeOptimizer make, DType dtype, bool masters) {
  Training cpu(dtype, masters, Device{}), device(dtype, masters, test_device());
  auto on_cpu = make(cpu.parameters.list), on_device = make(device.parameters.list);
  std::vector<StepResult> outcomes;
  for (int step = 0; step < kSteps; ++step) {
    const int missing = step % 5 == 2 ? step / 5 % 4 : -1;
    const StepOptions options{.divisor = 1.5, .clip_norm = 0.5};
    cpu.give_gradients(step, bad_at(step), missing);
    const StepOutcome expected = cpu.scaler.step(*on_cpu, options);
    EXPECT_EQ(expected == StepOutcome::overflow, bad_at(step) >= 0 && bad_at(step) != missing);
    device.give_gradients(step, bad_at(step), missing);
    outcomes.push_back(device.scaler.step(*on_device, options));
    if (step % 10 == 9) {
      ASSERT_EQ(device.scaler.scale(), cpu.scaler.scale()) << step;
      ASSERT_EQ(outcomes.back(), expected);
    }
  }
  int overflows = 0;
  for (const StepResult& outcome : outcomes) {  // read long after
    overflows += outcome == StepOutcome::overflow;
  }
  EXPECT_EQ(overflows, cpu.scaler.skipped_steps());
  EXPECT_EQ(device.scaler.state_scalars(), cpu.scaler.state_scalars());
  EXPECT_EQ(on_device->state_scalars(), on_cpu->state_scalars());
  EXPECT_NEAR(on_device->last_norm(), on_cpu->last_norm(), 1e-6 * on_cpu->last_norm());
  const double bound = !is_half(dtype) ? 1e-5 : masters ? 2 * epsilon(dtype) : 64 * epsilon(dtype);
  expect_same_values(device, cpu, bound);
}

TEST(DeviceStep, TheArenaIsOnTheDeviceOfItsParameters) {
  const TestParameters parameters({{"a", {2}, DType::f16}, {"b", {3}}}, true);
  EXPECT_EQ(parameters.arena->device(), test_device());
  for (const Arena::Segment& segment : parameters.arena->segments()) {
    EXPECT_EQ(segment.gradients.device(), test_device());
  }
  EXPECT_EQ(parameters.arena->segments()[0].masters.device(), test_device());
  EXPECT_EQ(parameters.arena->make_state()[0].device(), test_device());
  if (test_device().is_cpu()) {
    return;
  }
  Tensor here = ones({2}), there = on_test_device(here);
  try {
    (void)Arena::build(
        {{.name = "here", .handles = {&here}}, {.name = "there", .handles = {&there}}}, false);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("there is on"), std::string::npos) << error.what();
  }
}

TEST(DeviceStep, AdamWFollowsTheCpu) {
  const auto make = [](const ParameterList& list) {
    return std::make_unique<AdamW>(list, AdamWOptions{.lr = 0.01, .amsgrad = true});
  };
  expect_equivalent(make, DType::f32, false);
  expect_equivalent(make, DType::f16, true);
  expect_equivalent(make, DType::bf16, true);
  expect_equivalent(make, DType::f16, false);
}

TEST(DeviceStep, SgdFollowsTheCpu) {
  const auto make = [](const ParameterList& list) {
    return std::make_unique<SGD>(
        list, SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  };
  expect_equivalent(make, DType::f32, false);
  expect_equivalent(make, DType::f16, true);
  expect_equivalent(make, DType::bf16, true);
}

TEST(DeviceStep, OtherOptimizersFollowTheCpu) {
  const auto all = [](const auto& make) {
    expect_equivalent(make, DType::f32, false);
    expect_equivalent(make, DType::f16, true);
  };
  all([](const ParameterList& list) {
    return std::make_unique<RMSprop>(
        list, RMSpropOptions{.eps = 1e-3, .weight_decay = 0.01, .momentum = 0.9, .centered = true});
  });
  all([](const ParameterList& list) {
    return std::make_unique<Adagrad>(list, AdagradOptions{.lr = 0.1, .lr_decay = 0.1});
  });
  all([](const ParameterList& list) {
    return std::make_unique<NAdam>(list, NAdamOptions{.lr = 0.01, .weight_decay = 0.01});
  });
  all([](const ParameterList& list) {
    return std::make_unique<RAdam>(
        list, RAdamOptions{.lr = 0.01, .weight_decay = 0.1, .decoupled_weight_decay = true});
  });
  all([](const ParameterList& list) {
    return std::make_unique<LAMB>(list, LAMBOptions{.lr = 0.02});
  });
  all([](const ParameterList& list) { return std::make_unique<LARS>(list, LARSOptions{}); });
}

TEST(DeviceStep, GroupsHaveTheirOwnRates) {
  const auto make = [](const ParameterList& list) {
    const auto is_matrix = [](const Parameter& p) { return p.name == "matrix"; };
    const auto is_other = [](const Parameter& p) { return p.name != "matrix"; };
    return std::make_unique<AdamW>(
        std::vector<ParamGroup>{{list.filter(is_matrix), 0.05, 0.0}, {list.filter(is_other)}},
        AdamWOptions{.lr = 0.01, .decay_norms_and_biases = false});
  };
  expect_equivalent(make, DType::f32, false);
  expect_equivalent(make, DType::f16, true);
}

TEST(DeviceStep, AScheduleMovesWithAppliedSteps) {
  Training cpu(DType::f32, false, Device{}), device(DType::f32, false, test_device());
  SGD on_cpu(cpu.parameters.list, {.lr = 0.5}), on_device(device.parameters.list, {.lr = 0.5});
  ExponentialLR slow(on_cpu, {.gamma = 0.5}), other(on_device, {.gamma = 0.5});
  for (int step = 0; step < 8; ++step) {
    const int bad = step == 3 || step == 4 ? 0 : -1;
    cpu.give_gradients(step, bad, -1);
    slow.advance(cpu.scaler.step(on_cpu));
    device.give_gradients(step, bad, -1);
    other.advance(device.scaler.step(on_device));
  }
  EXPECT_EQ(other.step(), 6);
  EXPECT_EQ(on_device.lr(), on_cpu.lr());
  expect_same_values(device, cpu, 1e-5);
}

// The device reads learning rates and momenta from a table, which is refilled at its end.
TEST(DeviceStep, AScheduleOfManySteps) {
  if (test_device().is_cpu()) {
    GTEST_SKIP() << "for a device";
  }
  TestParameters parameters({{"a", {2}}, {"b", {2}}});
  const auto only = [&](const std::string& name) {
    return parameters.list.filter([&](const Parameter& p) { return p.name == name; });
  };
  AdamW adam({{only("a")}, {only("b"), 0.5}}, {.lr = 1});
  OneCycleLR schedule(adam, {.max_lr = 0.1, .total_steps = 2500});
  const Tensor applied = zeros({1}, DType::f64, test_device());
  const Tensor skipped = ones({1}, DType::f64, test_device());
  int64_t position = 0;
  for (int64_t step = 0; step < 3000; ++step) {
    const bool skips = step % 7 == 3;
    schedule.advance(StepResult(skips ? skipped : applied, nullptr));
    position += !skips;
    if (step % 500 == 499 || step == 1023 || step == 1024) {
      EXPECT_EQ(adam.lr(0), schedule.rate(position)) << step;
      EXPECT_EQ(adam.lr(1), schedule.rate(position));
      EXPECT_EQ(adam.momentum(1), schedule.momentum(position));
      EXPECT_EQ(adam.state_scalars().at("lr.0"), schedule.rate(position));
    }
  }
  EXPECT_EQ(schedule.step(), position);
  schedule.set_step(7);
  EXPECT_EQ(adam.lr(0), schedule.rate(7));
  schedule.advance(StepOutcome::applied);
  EXPECT_EQ(schedule.step(), 8);
  EXPECT_EQ(adam.momentum(0), schedule.momentum(8));
}

TEST(DeviceStep, AccumulatesOneScaleOverAWindow) {
  std::vector<double> values[2];
  for (const Device where : {Device{}, test_device()}) {
    Training run(DType::f32, false, where);
    SGD sgd(run.parameters.list, {.lr = 0.1});
    for (int step = 0; step < 6; ++step) {
      run.give_gradients(step, -1, -1);
      const bool full = step % 3 == 2;
      const StepResult result = run.scaler.step(sgd, {.divisor = 3, .accumulating = !full});
      EXPECT_EQ(result.known(), !full || where.is_cpu());
      EXPECT_EQ(result == StepOutcome::accumulating, !full);
    }
    EXPECT_EQ(sgd.step_count(), 2);
    values[where == Device{} ? 0 : 1] = values_of(run.parameters.arena->segments()[0].values);
  }
  if (!test_device().is_cpu()) {
    ASSERT_EQ(values[0].size(), values[1].size());
    for (size_t i = 0; i < values[0].size(); ++i) {
      EXPECT_NEAR(values[0][i], values[1][i], 1e-6);
    }
  }
}

// One scaler and two optimizers, as for a generator and its critic: the first step changes the
// scale, and the gradients of the second still have the old one.
TEST(DeviceStep, GradientsOfAnotherOptimizerKeepTheirScale) {
  manual_seed(5);
  TestParameters parameters({{"a", {2}}, {"b", {2}}});
  const auto only = [&](const std::string& name) {
    return parameters.list.filter([&](const Parameter& p) { return p.name == name; });
  };
  SGD first(only("a"), {.lr = 1}), second(only("b"), {.lr = 1});
  LossScaler scaler({.init_scale = 8, .growth_interval = 1});
  const std::vector<double> before = values_of(parameters.list[1].value);
  const auto backward = [&](size_t i, double x) {
    scaler.scale(sum(parameters.list[i].value * x)).backward();
  };
  backward(0, 1);
  backward(1, 3);
  ASSERT_EQ(scaler.step(first), StepOutcome::applied);
  EXPECT_EQ(scaler.scale(), 16);
  backward(0, 1);
  EXPECT_EQ(parameters.list[0].leaf().buffer.at(0), 16);
  EXPECT_EQ(parameters.list[0].value.grad().at(0), 1);
  EXPECT_EQ(parameters.list[1].leaf().buffer.at(0), 24);
  EXPECT_EQ(parameters.list[1].value.grad().at(0), 3);
  EXPECT_THROW(backward(1, 3), Error);  // two scales in one gradient
  parameters.list[1].value.zero_grad();
  backward(1, 3);
  ASSERT_EQ(scaler.step(second), StepOutcome::applied);
  EXPECT_NEAR(values_of(parameters.list[1].value)[0], before[0] - 3, 1e-6);
}

TEST(DeviceStep, AnErrorAtTheFloorStopsUpdatesUntilItIsThrown) {
  TestParameters parameters({{"first", {2}}, {"second", {2}}});
  SGD sgd(parameters.list, {.lr = 1});
  LossScaler scaler({.init_scale = 4, .min_scale = 4});
  const std::vector<double> before = values_of(parameters.list[0].value);
  const auto step = [&](double x) {
    const Tensor& second = parameters.list[1].value;
    scaler.scale(sum(parameters.list[0].value) + sum(second * x)).backward();
    return scaler.step(sgd);
  };
  if (test_device().is_cpu()) {
    EXPECT_THROW((void)step(INFINITY), Error);
    return;
  }
  const StepResult bad = step(INFINITY), next = step(1);
  EXPECT_EQ(values_of(parameters.list[0].value), before);
  try {
    (void)next.value();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("gradient of second"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(bad, StepOutcome::overflow);  // once is enough
  EXPECT_EQ(step(1), StepOutcome::applied);
  EXPECT_NEAR(values_of(parameters.list[0].value)[0], before[0] - 1, 1e-6);
  (void)step(NAN);
  EXPECT_THROW(scaler.state_scalars(), Error);
}

TEST(DeviceStep, StateMovesBetweenDevices) {
  Training cpu(DType::f16, true, Device{}), device(DType::f16, true, test_device());
  AdamW on_cpu(cpu.parameters.list, {.lr = 0.01}), on_device(device.parameters.list, {.lr = 0.01});
  for (int step = 0; step < 5; ++step) {
    device.give_gradients(step, step == 1 ? 2 : -1, step == 3 ? 0 : -1);
    (void)device.scaler.step(on_device);
  }
  EXPECT_EQ(on_device.state_scalars().at("step"), 4);
  EXPECT_EQ(on_device.state_scalars().at("updates.conv"), 3);
  NamedTensors state = on_device.state_tensors();
  for (auto& [name, tensor] : state) {
    tensor = tensor.to(Device{});
  }
  on_cpu.load_state(state, on_device.state_scalars());
  cpu.scaler.load_state(device.scaler.state_scalars());
  {
    NoGradGuard guard;
    cpu.parameters.list[1].value.copy_(device.parameters.list[1].value);
  }
  for (int step = 5; step < 9; ++step) {
    for (Training* run : {&cpu, &device}) {
      run->give_gradients(step, -1, -1);
      (void)run->scaler.step(run == &cpu ? on_cpu : on_device);
    }
  }
  EXPECT_EQ(on_device.state_scalars(), on_cpu.state_scalars());
  EXPECT_EQ(device.scaler.state_scalars(), cpu.scaler.state_scalars());
  expect_same_values(device, cpu, 2 * epsilon(DType::f16));
  on_device.load_state(on_cpu.state_tensors(), on_cpu.state_scalars());
  EXPECT_EQ(on_device.state_scalars(), on_cpu.state_scalars());
}

}  // namespace
}  // namespace binade::optim::device_step_test
