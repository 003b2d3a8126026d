// Modules that run in one pass with their neighbours give the same results as separate modules.
#include <binade/core/autograd/op.h>
#include <binade/core/observe/observer.h>
#include <binade/core/ops.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/activation.h>
#include <binade/nn/fusion_internal.h>
#include <binade/nn/linear.h>
#include <binade/nn/models.h>
#include <binade/nn/pool.h>
#include <binade/nn/sequential.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>

namespace binade::nn::passes_test {
namespace {

// A user's module: it computes another function than its base class and counts its calls.
template <class M>
class Own : public M {
 public:
  using M::M;
  Tensor forward(const Tensor& x) override {
    ++calls;
    return M::forward(x) * 2.0 - 0.5;
  }
  int calls = 0;
};

void add_layers(Sequential& model) {
  model.add<Conv2d>({.in = 3, .out = 16, .kernel = 3, .padding = 1});
  model.add<ReLU>();
  model.add<Conv2d>({.in = 16, .out = 33, .kernel = 3, .padding = 1, .bias = false});
  model.add<BatchNorm2d>({.channels = 33});
  model.add<ReLU>();
  model.add<Conv2d>({.in = 33, .out = 8, .kernel = 1, .stride = 2});
  model.add<BatchNorm2d>({.channels = 8});
  model.add<Own<Conv2d>>(Conv2dOptions{.in = 8, .out = 8, .kernel = 3});
  model.add<ReLU>();
  model.add<ResidualBlock>({.in = 8, .out = 12, .stride = 2});
  model.add<ResidualBlock>({.in = 12, .out = 12});
  model.add<Bottleneck>({.in = 12, .width = 3});
  model.add<Flatten>();
  model.add<Linear>({.in = 12 * 3 * 2, .out = 9});
  model.add<BatchNorm1d>({.channels = 9});
  model.add<ReLU>();
  model.add<Linear>({.in = 9, .out = 7});
  model.add<ReLU>();
  model.add<Linear>({.in = 7, .out = 5});
}

// While one exists, every op is a separate pass, because an observer is registered.
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

// A norm in the epilogue of its convolution is rounded less often.
TEST(Passes, EvaluationIsAsClose) {
  const Values apart = run(true, false, false), together = run(false, false, false);
  ASSERT_EQ(apart.y.size(), together.y.size());
  for (size_t i = 0; i < apart.y.size(); ++i) {
    EXPECT_NEAR(apart.y[i], together.y[i], 1e-5 * (1 + std::fabs(apart.y[i])));
  }
}

Tensor run_relu(Module& conv, Module& norm, const Tensor& x, const Tensor& residual) {
  return Fusion::run({.first = conv, .norm = &norm, .residual = residual, .relu = true}, x);
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
  const Tensor want = relu(norm(conv(x)) + residual), got = run_relu(conv, norm, x, residual);
  for (int64_t i = 0; i < want.numel(); ++i) {
    EXPECT_NEAR(want.at(i), got.at(i), 1e-6 * (1 + std::fabs(want.at(i))));
  }
  EXPECT_THROW(run_relu(conv, norm, x, randn({2, 4, 6, 4})), Error);
  EXPECT_THROW(run_relu(conv, norm, randn({2, 2, 6, 5}), {}), Error);
  EXPECT_THROW(Fusion::run({.first = conv, .norm = &norm}, Tensor()), Error);
  BatchNorm2d narrow({.channels = 3});
  narrow.eval();
  EXPECT_THROW(Fusion::run({.first = conv, .norm = &narrow}, x), Error);
}

// A subclass with its own forward() is called, whatever modules are next to it.

enum class Mode : uint8_t { training, evaluation, inference };
constexpr Mode kModes[] = {Mode::training, Mode::evaluation, Mode::inference};

// f() in a mode; disturbs the statistics first.
template <class F>
void in_mode(Mode mode, Module& model, const F& f) {
  disturb(model);
  model.train(mode == Mode::training);
  std::optional<NoGradGuard> guard;
  if (mode == Mode::inference) {
    guard.emplace();
  }
  f();
}

// `fused` and its modules one by one, of which one is a user's, are the same function.
void expect_own_runs(Mode mode, const std::function<Tensor()>& fused,
                     const std::function<Tensor()>& apart, const int& calls) {
  const int before = calls;
  const Tensor got = fused();
  EXPECT_EQ(calls, before + 1) << "mode " << static_cast<int>(mode);
  const Tensor want = apart();
  ASSERT_EQ(got.sizes(), want.sizes());
  for (int64_t i = 0; i < want.numel(); ++i) {
    ASSERT_NEAR(got.at(i), want.at(i), 1e-5 * (1 + std::fabs(want.at(i)))) << i;
  }
}

const Conv2dOptions kConv{.in = 3, .out = 5, .kernel = 3, .padding = 1};

// A Sequential of three modules; `index` is the user's, of class Own<M>.
template <class M>
void expect_own_runs_in(const char* what, size_t index, const Dims& sizes,
                        const std::function<void(Sequential&)>& build) {
  SCOPED_TRACE(what);
  for (const Mode mode : kModes) {
    manual_seed(3);
    Sequential model;
    build(model);
    const Tensor x = randn(sizes);
    auto& own = dynamic_cast<Own<M>&>(model[index]);
    in_mode(mode, model, [&] {
      expect_own_runs(
          mode, [&] { return model(x); },
          [&] {
            Tensor y = x;
            for (size_t i = 0; i < model.size(); ++i) {
              y = model[i](y);
            }
            return y;
          },
          own.calls);
    });
  }
}

template <class Conv, class Norm, class Relu>
void add_conv_norm_relu(Sequential& model) {
  model.add<Conv>(kConv);
  model.add<Norm>(BatchNorm2dOptions{.channels = 5});
  model.add<Relu>();
}
template <class First, class Options, class Relu>
void add_with_relu(Sequential& model, const Options& options) {
  model.add<First>(options);
  model.add<Relu>();
  model.add<Tanh>();
}

TEST(Passes, OverriddenForwardRunsInSequential) {
  const Dims images{2, 3, 7, 6}, rows{6, 4};
  expect_own_runs_in<Conv2d>("conv norm relu", 0, images,
                             add_conv_norm_relu<Own<Conv2d>, BatchNorm2d, ReLU>);
  expect_own_runs_in<BatchNorm2d>("conv norm relu", 1, images,
                                  add_conv_norm_relu<Conv2d, Own<BatchNorm2d>, ReLU>);
  expect_own_runs_in<ReLU>("conv norm relu", 2, images,
                           add_conv_norm_relu<Conv2d, BatchNorm2d, Own<ReLU>>);
  const auto conv_relu = [](auto& m) { add_with_relu<Own<Conv2d>, Conv2dOptions, ReLU>(m, kConv); };
  const auto conv_own_relu = [](auto& m) {
    add_with_relu<Conv2d, Conv2dOptions, Own<ReLU>>(m, kConv);
  };
  expect_own_runs_in<Conv2d>("conv relu", 0, images, conv_relu);
  expect_own_runs_in<ReLU>("conv relu", 1, images, conv_own_relu);
  const LinearOptions linear{.in = 4, .out = 5};
  expect_own_runs_in<Linear>("linear relu", 0, rows, [&](auto& m) {
    add_with_relu<Own<Linear>, LinearOptions, ReLU>(m, linear);
  });
  expect_own_runs_in<ReLU>("linear relu", 1, rows, [&](auto& m) {
    add_with_relu<Linear, LinearOptions, Own<ReLU>>(m, linear);
  });
  expect_own_runs_in<BatchNorm2d>("norm relu", 0, images, [](auto& m) {
    add_with_relu<Own<BatchNorm2d>, BatchNorm2dOptions, ReLU>(m, {.channels = 3});
  });
  expect_own_runs_in<BatchNorm1d>("norm relu", 0, rows, [](auto& m) {
    add_with_relu<Own<BatchNorm1d>, BatchNorm1dOptions, ReLU>(m, {.channels = 4});
  });
  expect_own_runs_in<GELU>("linear gelu linear", 1, rows, [&](auto& m) {
    m.template add<Linear>(linear);
    m.template add<Own<GELU>>();
    m.template add<Linear>({.in = 5, .out = 2});
  });
}

// The passes that library models ask for.
TEST(Passes, OverriddenForwardRunsInChains) {
  for (const Mode mode : kModes) {
    manual_seed(4);
    const Tensor x = randn({2, 3, 7, 6}), residual = randn({2, 5, 7, 6}), rows = randn({6, 4});
    Conv2d conv(kConv);
    BatchNorm2d norm({.channels = 5});
    Own<Conv2d> own_conv(kConv);
    Own<BatchNorm2d> own_norm({.channels = 5});
    Linear linear1({.in = 4, .out = 8}), linear2({.in = 8, .out = 3});
    Own<Linear> own1({.in = 4, .out = 8}), own2({.in = 8, .out = 3});
    for (Module* norms : {static_cast<Module*>(&norm), static_cast<Module*>(&own_norm)}) {
      norms->train(mode == Mode::training);
    }
    in_mode(mode, norm, [&] {
      expect_own_runs(
          mode, [&] { return run_relu(own_conv, norm, x, residual); },
          [&] { return relu(norm(own_conv(x)) + residual); }, own_conv.calls);
      expect_own_runs(
          mode, [&] { return run_relu(conv, own_norm, x, residual); },
          [&] { return relu(own_norm(conv(x)) + residual); }, own_norm.calls);
      expect_own_runs(
          mode, [&] { return Fusion::run({.first = own1, .relu = true}, rows); },
          [&] { return relu(own1(rows)); }, own1.calls);
      expect_own_runs(
          mode, [&] { return Fusion::run_feedforward(own1, linear2, rows); },
          [&] { return linear2(gelu(own1(rows))); }, own1.calls);
      expect_own_runs(
          mode, [&] { return Fusion::run_feedforward(linear1, own2, rows); },
          [&] { return own2(gelu(linear1(rows))); }, own2.calls);
    });
  }
}

// The feed-forward part of GPT-2, whose gelu is the approximation.
TEST(Passes, FeedforwardOfEachGeluIsAsClose) {
  for (const kernels::Activation activation :
       {kernels::Activation::gelu, kernels::Activation::gelu_tanh}) {
    std::vector<double> results[2];
    for (const bool apart : {false, true}) {
      manual_seed(4);
      Linear first({.in = 5, .out = 9}), second({.in = 9, .out = 7});
      const Tensor x = randn({2, 3, 5}).require_grad();
      const Apart look(apart);
      const Tensor y = Fusion::run_feedforward(first, second, x, activation);
      sum(y * randn(y.sizes())).backward();
      for (const Tensor& t : {y, x.grad(), first.weight.grad(), first.bias.grad(),
                              second.weight.grad(), second.bias.grad()}) {
        const std::vector<double> more = values(t.contiguous());
        results[apart].insert(results[apart].end(), more.begin(), more.end());
      }
    }
    ASSERT_EQ(results[0].size(), results[1].size());
    for (size_t i = 0; i < results[0].size(); ++i) {
      EXPECT_NEAR(results[0][i], results[1][i], 2e-6 * (1 + std::fabs(results[1][i])));
    }
  }
}

// Modules that a user adds to a library model.
TEST(Passes, OverriddenForwardRunsInModels) {
  for (const Mode mode : kModes) {
    manual_seed(5);
    ResNet model({.depth = 18, .classes = 3, .small_images = true});
    auto& block = model.layer4.add<Own<ResidualBlock>>(ResidualBlockOptions{.in = 512, .out = 512});
    auto& conv =
        block.downsample.add<Own<Conv2d>>(Conv2dOptions{.in = 512, .out = 512, .kernel = 1});
    auto& norm = block.downsample.add<Own<BatchNorm2d>>(BatchNorm2dOptions{.channels = 512});
    in_mode(mode, model, [&] { model(randn({2, 3, 9, 9})); });
    EXPECT_EQ(block.calls, 1);
    EXPECT_EQ(conv.calls, 1);
    EXPECT_EQ(norm.calls, 1);
  }
}

// A rule for relu that names its place in a Sequential is followed: relu is a separate module.
TEST(Passes, RuleForAReluOfASequentialIsFollowed) {
  Sequential model;
  model.add<Linear>({.in = 4, .out = 5});
  model.add<ReLU>();
  const Precision precision =
      Precision::autocast(DType::bf16).with({{.op = "relu", .module = "1", .dtype = DType::f32}});
  const PrecisionScope scope(precision);
  EXPECT_EQ(model(randn({3, 4})).dtype(), DType::f32);
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
}  // namespace binade::nn::passes_test
