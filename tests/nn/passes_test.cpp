// Modules that run in one pass with their neighbours give what they give apart.
#include <binade/core/autograd/op.h>
#include <binade/core/observe/observer.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/activation.h>
#include <binade/nn/linear.h>
#include <binade/nn/models.h>
#include <binade/nn/pool.h>
#include <binade/nn/sequential.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

namespace binade::nn {
namespace {

// A convolution of somebody's own: its relu() is not Conv2d's.
class DoubledConv : public Conv2d {
 public:
  using Conv2d::Conv2d;
  Tensor forward(const Tensor& x) override { return Conv2d::forward(x) * 2.0; }
};

void add_layers(Sequential& model) {
  model.add<Conv2d>({.in = 3, .out = 16, .kernel = 3, .padding = 1});
  model.add<ReLU>();
  model.add<Conv2d>({.in = 16, .out = 33, .kernel = 3, .padding = 1, .bias = false});
  model.add<BatchNorm2d>({.channels = 33});
  model.add<ReLU>();
  model.add<Conv2d>({.in = 33, .out = 8, .kernel = 1, .stride = 2});
  model.add<BatchNorm2d>({.channels = 8});
  model.add<DoubledConv>(Conv2dOptions{.in = 8, .out = 8, .kernel = 3});
  model.add<ReLU>();
  model.add<ResidualBlock>({.in = 8, .out = 12, .stride = 2});
  model.add<ResidualBlock>({.in = 12, .out = 12});
  model.add<Flatten>();
  model.add<Linear>({.in = 12 * 3 * 2, .out = 9});
  model.add<BatchNorm1d>({.channels = 9});
  model.add<ReLU>();
  model.add<Linear>({.in = 9, .out = 7});
  model.add<ReLU>();
  model.add<Linear>({.in = 7, .out = 5});
}

// While one exists every op has a pass of its own, for an observer looks.
class Apart : public OpObserver {
 public:
  explicit Apart(bool apart) {
    if (apart) {
      scope_.emplace(*this);
    }
  }

 private:
  std::optional<ObserverScope> scope_;
};

std::vector<double> values(const Tensor& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.numel(); ++i) {
    out.push_back(t.at(i));
  }
  return out;
}

// Statistics that are not 0 and 1.
void disturb(Module& model) {
  for (auto [name, buffer] : model.named_buffers()) {
    for (int64_t i = 0; i < buffer.numel(); ++i) {
      buffer.data<float>()[i] += 0.05F * static_cast<float>(i % 7);
    }
  }
}

struct Values {
  std::vector<double> y;
  std::vector<std::vector<double>> gradients;
};

Values run(bool apart, bool training, bool recorded) {
  manual_seed(9);
  Sequential model;
  add_layers(model);
  disturb(model);
  model.train(training);
  const Tensor x = randn({8, 3, 13, 11});
  const Apart look(apart);
  Values result;
  if (!recorded) {
    const NoGradGuard guard;
    result.y = values(model(x));
    return result;
  }
  const Tensor y = model(x);
  result.y = values(y);
  sum(y * randn(y.sizes())).backward();
  for (const auto& [name, parameter] : model.named_parameters()) {
    result.gradients.push_back(values(parameter.grad()));
  }
  return result;
}

TEST(Passes, TrainingIsTheSameBits) {
  const Values apart = run(true, true, true), together = run(false, true, true);
  EXPECT_EQ(apart.y, together.y);
  EXPECT_EQ(apart.gradients, together.gradients);
}

TEST(Passes, EvaluationWithGradientsIsTheSameBits) {
  const Values apart = run(true, false, true), together = run(false, false, true);
  EXPECT_EQ(apart.y, together.y);
  EXPECT_EQ(apart.gradients, together.gradients);
}

// A norm in the tiles of its convolution is rounded less often.
TEST(Passes, EvaluationIsAsClose) {
  const Values apart = run(true, false, false), together = run(false, false, false);
  ASSERT_EQ(apart.y.size(), together.y.size());
  for (size_t i = 0; i < apart.y.size(); ++i) {
    EXPECT_NEAR(apart.y[i], together.y[i], 1e-5 * (1 + std::fabs(apart.y[i])));
  }
}

// A residual in another memory order, and one of a wrong shape.
TEST(Passes, ResidualOfAnyOrder) {
  manual_seed(2);
  Conv2d conv({.in = 3, .out = 4, .kernel = 3, .padding = 1});
  BatchNorm2d norm({.channels = 4});
  disturb(norm);
  norm.eval();
  const NoGradGuard guard;
  const Tensor x = randn({2, 3, 6, 5}), residual = randn({2, 4, 6, 5});
  ASSERT_FALSE(residual.is_channels_last());
  const Tensor want = relu(norm(conv(x)) + residual), got = norm.relu_after(conv, x, residual);
  for (int64_t i = 0; i < want.numel(); ++i) {
    EXPECT_NEAR(want.at(i), got.at(i), 1e-6 * (1 + std::fabs(want.at(i))));
  }
  EXPECT_THROW(norm.relu_after(conv, x, randn({2, 4, 6, 4})), Error);
  EXPECT_THROW(norm.relu_after(conv, randn({2, 2, 6, 5})), Error);
  EXPECT_THROW(norm.after(conv, Tensor()), Error);
  BatchNorm2d narrow({.channels = 3});
  narrow.eval();
  EXPECT_THROW(narrow.after(conv, x), Error);
}

// In mixed precision the policy sees every op.
TEST(Passes, MixedPrecisionIsTheSameBits) {
  std::vector<double> y[2];
  for (const bool apart : {false, true}) {
    manual_seed(9);
    Sequential model;
    add_layers(model);
    model.to(Device{}, Precision::mixed(DType::bf16));
    const Tensor x = randn({8, 3, 13, 11});
    const Apart look(apart);
    y[apart] = values(model(x));
  }
  EXPECT_EQ(y[0], y[1]);
}

}  // namespace
}  // namespace binade::nn
