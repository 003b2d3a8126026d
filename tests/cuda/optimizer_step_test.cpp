// A training step on the device: the host does not wait, and the step can be one graph.
#include "device_fixture.h"

#include <binade/core/device/graph.h>
#include <binade/optim/adamw.h>
#include <binade/optim/lamb.h>
#include <binade/optim/loss_scaler.h>
#include <binade/optim/schedule.h>
#include <tests/optim/parameters.h>

#include <cmath>

namespace binade::optimizer_step_test {
namespace {

using OptimizerStepTest = DeviceTest;

struct Training {
  explicit Training(Device device)
      : parameters({{"w", {9, 5}, DType::f16}, {"norm", {5}, DType::f32, true}}, true, device),
        adam(parameters.list, {.lr = 0.01}),
        scaler({.init_scale = 1024, .growth_interval = 3}) {
    for (const Parameter& parameter : parameters.list) {
      inputs.push_back(empty(parameter.value.sizes(), DType::f32, device));
    }
  }

  // New inputs; the gradient of a parameter is its input.
  void give(int step, bool bad) {
    manual_seed(50 + static_cast<uint64_t>(step));
    for (const Tensor& input : inputs) {
      const Tensor x = randn(input.sizes());
      if (bad) {
        x.fill_(INFINITY);
      }
      input.copy_(x);
    }
  }
  optim::StepResult step() {
    Tensor loss;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor part = sum(cast(parameters.list[i].value, DType::f32) * inputs[i]);
      loss = loss.defined() ? loss + part : part;
    }
    scaler.scale(loss).backward();
    return scaler.step(adam, {.clip_norm = 1});
  }

  TestParameters parameters;
  optim::AdamW adam;
  optim::LossScaler scaler;
  std::vector<Tensor> inputs;
};

bool bad_at(int step) { return step == 2 || step == 5 || step == 6; }

void expect_same(const Training& device, const Training& cpu) {
  EXPECT_EQ(device.scaler.state_scalars(), cpu.scaler.state_scalars());
  EXPECT_EQ(device.adam.state_scalars(), cpu.adam.state_scalars());
  for (size_t i = 0; i < cpu.inputs.size(); ++i) {
    const std::vector<double> got = values_of(device.parameters.list[i].value);
    const std::vector<double> expected = values_of(cpu.parameters.list[i].value);
    for (size_t k = 0; k < got.size(); ++k) {
      ASSERT_NEAR(got[k], expected[k], 2e-3 * (1 + std::abs(expected[k])));
    }
  }
}

TEST_F(OptimizerStepTest, NobodyWaitsAndTheDeviceDecides) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    set_order(seed);
    manual_seed(1);
    Training cpu(Device{});
    manual_seed(1);
    Training device(kDevice);
    std::vector<optim::StepResult> results;
    for (int step = 0; step < 10; ++step) {
      cpu.give(step, bad_at(step));
      (void)cpu.step();
      device.give(step, bad_at(step));
      const WaitCounter waits;
      results.push_back(device.step());
      device.adam.set_lr(0.01);
      EXPECT_EQ(waits.count(), 0) << step;
    }
    for (int step = 0; step < 10; ++step) {
      EXPECT_EQ(results[static_cast<size_t>(step)] == StepOutcome::overflow, bad_at(step));
    }
    expect_same(device, cpu);
  }
}

TEST_F(OptimizerStepTest, IsOneGraph) {
  manual_seed(1);
  Training cpu(Device{});
  manual_seed(1);
  Training device(kDevice);
  device.scaler.to(kDevice);
  Graph graph(kDevice);
  optim::StepResult result = StepOutcome::accumulating;
  graph.capture([&] { result = device.step(); });
  for (int step = 0; step < 10; ++step) {
    if (step == 7) {
      cpu.adam.set_lr(0.1);
      device.adam.set_lr(0.1);
    }
    cpu.give(step, bad_at(step));
    const StepOutcome expected = cpu.step();
    device.give(step, bad_at(step));
    graph.replay();
    const optim::StepResult now = result;  // an unread copy: reading keeps the outcome
    EXPECT_EQ(now, expected) << step;
  }
  expect_same(device, cpu);
}

// Steps with a norm per parameter, as one graph, and a schedule that depends on their outcomes.
struct LayerwiseTraining {
  explicit LayerwiseTraining(Device device)
      : parameters({{"w", {90, 130}, DType::f16}, {"norm", {5}, DType::f32, true}}, true, device),
        lamb(parameters.list, {.lr = 0.01}),
        scaler({.init_scale = 1024, .growth_interval = 3}),
        schedule(lamb, {.max_lr = 0.1, .total_steps = 10}) {
    scaler.to(device);
    for (const Parameter& parameter : parameters.list) {
      inputs.push_back(empty(parameter.value.sizes(), DType::f32, device));
    }
  }
  void give(int step) {
    manual_seed(50 + static_cast<uint64_t>(step));
    for (const Tensor& input : inputs) {
      const Tensor x = randn(input.sizes());
      if (bad_at(step)) {
        x.fill_(NAN);
      }
      input.copy_(x);
    }
  }
  optim::StepResult step() {
    Tensor loss;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor part = sum(cast(parameters.list[i].value, DType::f32) * inputs[i]);
      loss = loss.defined() ? loss + part : part;
    }
    scaler.scale(loss).backward();
    return scaler.step(lamb);
  }
  TestParameters parameters;
  optim::LAMB lamb;
  optim::LossScaler scaler;
  optim::OneCycleLR schedule;
  std::vector<Tensor> inputs;
};

TEST_F(OptimizerStepTest, AScheduleFollowsTheOutcomesOfAGraph) {
  manual_seed(1);
  LayerwiseTraining cpu(Device{});
  manual_seed(1);
  LayerwiseTraining device(kDevice);
  device.give(0);
  device.schedule.advance(device.step());  // makes the table
  cpu.give(0);
  cpu.schedule.advance(cpu.step());
  Graph graph(kDevice);
  optim::StepResult result = StepOutcome::accumulating;
  graph.capture([&] { result = device.step(); });
  EXPECT_THROW(graph.capture([&] { device.schedule.advance(device.step()); }), Error);
  device.parameters.arena->clear_gradients();
  graph.capture([&] { result = device.step(); });
  for (int step = 1; step < 10; ++step) {
    cpu.give(step);
    cpu.schedule.advance(cpu.step());
    device.give(step);
    const WaitCounter waits;
    graph.replay();
    device.schedule.advance(result);
    EXPECT_EQ(waits.count(), 0) << step;
  }
  EXPECT_EQ(device.schedule.step(), 7);
  EXPECT_EQ(device.lamb.state_scalars(), cpu.lamb.state_scalars());
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<double> got = values_of(device.parameters.list[i].value);
    const std::vector<double> expected = values_of(cpu.parameters.list[i].value);
    for (size_t k = 0; k < got.size(); ++k) {
      ASSERT_NEAR(got[k], expected[k], 2e-3 * (1 + std::abs(expected[k])));
    }
  }
}

TEST_F(OptimizerStepTest, AnOutcomeCannotBeReadDuringCapture) {
  Training device(kDevice);
  device.give(0, false);
  device.scaler.to(kDevice);
  Graph graph(kDevice);
  EXPECT_THROW(graph.capture([&] { (void)device.step().value(); }), Error);
}

// Each group has its own second beta, which the bias correction on the device needs.
TEST_F(OptimizerStepTest, GroupsHaveTheirOwnBetas) {
  struct Groups {
    explicit Groups(Device device)
        : parameters({{"a", {9}}, {"b", {9}}}, false, device),
          adam({{.parameters = only("a")},
                {.parameters = only("b"), .betas = {{0.5, 0.6}}, .maximize = true}}) {}
    ParameterList only(const std::string& name) const {
      return parameters.list.filter([&](const Parameter& p) { return p.name == name; });
    }
    TestParameters parameters;
    optim::AdamW adam;
  };
  Groups device(kDevice), host(Device{});
  manual_seed(6);
  for (size_t i = 0; i < 2; ++i) {
    host.parameters.list[i].value.detach().copy_(device.parameters.list[i].value.to(Device{}));
  }
  for (int step = 0; step < 3; ++step) {
    for (size_t i = 0; i < 2; ++i) {
      const Tensor gradient = randn({9});
      host.parameters.set_gradient(i, gradient);
      device.parameters.set_gradient(i, gradient.to(kDevice));
    }
    (void)host.adam.step();
    (void)device.adam.step();
  }
  for (size_t i = 0; i < 2; ++i) {
    for (int64_t k = 0; k < 9; ++k) {
      EXPECT_NEAR(device.parameters.list[i].value.at(k), host.parameters.list[i].value.at(k), 1e-6);
    }
  }
}

}  // namespace
}  // namespace binade::optimizer_step_test
