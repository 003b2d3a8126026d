// A step as one graph computes the same as a plain step, including dropout and loss scaling.
#include "device_fixture.h"

#include <binade/binade.h>
#include <binade/train/graphed_step.h>

#include <cmath>

namespace binade::graphed_step_test {
namespace {

using GraphedStepTest = DeviceTest;

constexpr int64_t kBatch = 8, kFeatures = 12, kClasses = 4;

struct Training {
  explicit Training(const Precision& precision) {
    manual_seed(5);
    model.add<nn::Linear>({.in = kFeatures, .out = 32});
    model.add<nn::ReLU>();
    model.add<nn::Dropout>({.p = 0.25});
    model.add<nn::Linear>({.in = 32, .out = kClasses});
    model.to(kDevice, precision);
    adam = std::make_unique<optim::AdamW>(model.parameters(), optim::AdamWOptions{.lr = 0.01});
    scaler.to(kDevice);
  }
  std::vector<Tensor> step(std::span<const Tensor> in) {
    const Tensor loss = nn::cross_entropy(model(in[0]), in[1]);
    scaler.scale(loss).backward();
    (void)scaler.step(*adam, {.clip_norm = 1});
    return {loss.detach()};
  }
  nn::Sequential model;
  std::unique_ptr<optim::AdamW> adam;
  optim::LossScaler scaler{optim::LossScalerOptions{.init_scale = 1024, .growth_interval = 3}};
};

// Inputs of a step, from a separate generator; one step in six has an input that overflows.
std::vector<Tensor> draw(int64_t step, int64_t rows = kBatch) {
  philox::Stream random(9, static_cast<uint64_t>(step));
  Tensor x = empty({rows, kFeatures}), labels = empty({rows}, DType::i64);
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.data<float>()[i] = 2 * random.next_uniform() - 1;
  }
  if (step % 6 == 4) {
    x.data<float>()[3] = INFINITY;
  }
  for (int64_t i = 0; i < rows; ++i) {
    labels.data<int64_t>()[i] = random.next_below(kClasses);
  }
  return {x, labels};
}

int64_t rows_of(int64_t step) { return step % 5 == 3 ? 5 : kBatch; }  // a smaller batch in between

std::vector<double> losses(const Precision& precision, bool graphed, int64_t& replays) {
  Training training(precision);
  train::GraphedStep step(kDevice, [&](std::span<const Tensor> in) { return training.step(in); });
  std::vector<double> out;
  for (int64_t i = 0; i < 20; ++i) {
    std::vector<Tensor> inputs = draw(i, rows_of(i));
    if (graphed) {
      out.push_back(step(inputs)[0].item());
    } else {
      for (Tensor& input : inputs) {
        input = input.to(kDevice);
      }
      out.push_back(training.step(inputs)[0].item());
    }
  }
  out.push_back(training.scaler.scale());
  out.push_back(static_cast<double>(training.adam->step_count()));
  for (const Parameter& parameter : training.adam->parameters()) {
    const Tensor value = parameter.value.detach().to(Device{});
    for (int64_t k = 0; k < value.numel(); ++k) {
      out.push_back(value.at(k));
    }
  }
  replays = step.replays();
  return out;
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))) {
      return false;
    }
  }
  return a.size() == b.size();
}

TEST_F(GraphedStepTest, ComputesWhatThePlainStepComputes) {
  for (const Precision& precision : {Precision::full(), Precision::mixed(DType::f16)}) {
    int64_t replays = 0, none = 0;
    const std::vector<double> plain = losses(precision, false, none);
    const std::vector<double> graphed = losses(precision, true, replays);
    EXPECT_TRUE(same(plain, graphed)) << to_string(precision);
    EXPECT_GE(replays, 12);
    EXPECT_EQ(none, 0);
  }
}

TEST_F(GraphedStepTest, NumbersDrawnInBetweenMoveTheRandomSequenceOn) {
  const auto run = [](bool graphed) {
    Training training(Precision::full());
    train::GraphedStep step(kDevice, [&](std::span<const Tensor> in) { return training.step(in); });
    std::vector<double> out;
    for (int64_t i = 0; i < 8; ++i) {
      std::vector<Tensor> inputs = draw(0);
      out.push_back(
          graphed
              ? step(inputs)[0].item()
              : training.step(std::vector<Tensor>{inputs[0].to(kDevice), inputs[1].to(kDevice)})[0]
                    .item());
      if (i % 3 == 1) {
        (void)rand({100});
      }
    }
    return out;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_F(GraphedStepTest, AReadInsideIsAnErrorAndLeavesThePlainStepUsable) {
  Training training(Precision::full());
  bool read = false;
  train::GraphedStep step(
      kDevice,
      [&](std::span<const Tensor> in) {
        std::vector<Tensor> out = training.step(in);
        if (read) {
          (void)out[0].item();
        }
        return out;
      },
      1);
  (void)step(draw(0));
  read = true;
  EXPECT_THROW((void)step(draw(1)), Error);
  read = false;
  EXPECT_TRUE(std::isfinite(step(draw(2))[0].item()));
  EXPECT_EQ(step.replays(), 1);
}

// If a weight is changed in place between two calls, the second call starts from the new values,
// whether it is a plain step, the recording, or a replay.
TEST_F(GraphedStepTest, FollowsWeightsThatWereChangedInPlace) {
  for (const int64_t changed_before : {1, 2, 3, 5}) {
    Training training(Precision::mixed(DType::f16));
    training.adam->set_lr(0);
    train::GraphedStep step(kDevice, [&](std::span<const Tensor> in) { return training.step(in); });
    for (int64_t i = 0; i < 7; ++i) {
      if (i == changed_before) {
        nn::init::constant(static_cast<nn::Linear&>(training.model[3]).weight, 5);
      }
      (void)step(draw(1));
    }
    EXPECT_GE(step.replays(), 4);
    const Tensor weight = static_cast<nn::Linear&>(training.model[3]).weight.detach();
    EXPECT_EQ(amin(weight).to(Device{}).item(), 5) << changed_before;
    EXPECT_EQ(amax(weight).to(Device{}).item(), 5) << changed_before;
  }
}

}  // namespace
}  // namespace binade::graphed_step_test
