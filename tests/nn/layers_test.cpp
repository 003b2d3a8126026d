// Shapes, memory orders and values of layers; initial values; losses.
#include <binade/core/linalg/linalg.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/init.h>
#include <binade/nn/losses.h>
#include <binade/nn/models.h>
#include <binade/nn/resize.h>
#include <binade/nn/unfold.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

namespace binade::nn::layers_test {
namespace {

TEST(Linear, ComputesTheProduct) {
  Linear layer({.in = 3, .out = 2});
  const Tensor x = randn({2, 4, 3});
  const Tensor y = layer(x);
  ASSERT_EQ(y.sizes(), (Dims{2, 4, 2}));
  double expected = layer.bias.at(1);
  for (int k = 0; k < 3; ++k) {
    expected += x.at(15 + k) * layer.weight.at(3 + k);
  }
  EXPECT_NEAR(y.at(11), expected, 1e-5);
  EXPECT_FALSE(Linear({.in = 3, .out = 2, .bias = false}).bias.defined());
  EXPECT_THROW(Linear({.in = 0, .out = 2}), Error);
}

TEST(Conv2d, ShapesAndMemoryOrder) {
  Conv2d layer({.in = 4,
                .out = 6,
                .kernel = {3, 5},
                .stride = 2,
                .padding = {1, 2},
                .dilation = 1,
                .groups = 2});
  EXPECT_EQ(layer.weight.sizes(), (Dims{6, 2, 3, 5}));
  const Tensor y = layer(randn({2, 4, 9, 11}));
  EXPECT_EQ(y.sizes(), (Dims{2, 6, 5, 6}));
  EXPECT_TRUE(y.is_channels_last());
  EXPECT_THROW(Conv2d({.in = 3, .out = 4, .kernel = 3, .groups = 2}), Error);
  EXPECT_THROW(Conv2d({.in = 3, .out = 4, .kernel = 3, .stride = 0}), Error);
}

TEST(BatchNorm2d, NormalizesInTrainingAndRemembers) {
  BatchNorm2d layer({.channels = 3, .momentum = 1});
  const Tensor x = channels_last(randn({8, 3, 4, 4}) * 3 + 5);
  const Tensor y = layer(x);
  EXPECT_TRUE(y.is_channels_last());
  EXPECT_NEAR(mean(y).item(), 0, 1e-5);
  EXPECT_NEAR(mean(square(y)).item(), 1, 1e-3);
  EXPECT_NEAR(mean(layer.running_mean).item(), mean(x).item(), 1e-4);
  layer.eval();
  EXPECT_NEAR(mean(layer(x)).item(), 0, 1e-4);
  EXPECT_THROW(layer(randn({8, 3})), Error);
}

TEST(PixelShuffle, IsUndoneByPixelUnshuffle) {
  PixelShuffle up({.upscale_factor = 3});
  PixelUnshuffle down({.downscale_factor = 3});
  const Tensor x = randn({2, 18, 4, 5});
  const Tensor y = up(x);
  ASSERT_EQ(y.sizes(), (Dims{2, 2, 12, 15}));
  EXPECT_EQ(select(select(select(y, 0, 1), 0, 1), 0, 4).at(5),
            x.at(((18 + 9 + 5) * 4 + 1) * 5 + 1));
  EXPECT_TRUE(equal(down(y), x));
}

TEST(Unfold, MakesAConvolutionAProduct) {
  Unfold unfold({.kernel = {3, 2}, .dilation = {1, 2}, .padding = {1, 0}, .stride = {2, 1}});
  const Tensor x = randn({2, 3, 6, 5}), w = randn({4, 3, 3, 2});
  const Tensor columns = unfold(x);
  ASSERT_EQ(columns.sizes(), (Dims{2, 18, 9}));
  const Tensor wanted = conv2d(x, w, {}, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}});
  const Tensor y = matmul(reshape(w, {4, 18}), columns);
  EXPECT_LT(max(abs(sub(reshape(y, wanted.sizes()), wanted))).item(), 1e-4);
  // Its adjoint: <fold(c), x> = <c, unfold(x)>.
  Fold fold({.output = {6, 5},
             .kernel = {3, 2},
             .dilation = {1, 2},
             .padding = {1, 0},
             .stride = {2, 1}});
  const Tensor c = randn(columns.sizes());
  EXPECT_NEAR(sum(mul(fold(c), x)).item(), sum(mul(c, columns)).item(), 1e-3);
  EXPECT_THROW(unfold(randn({6, 5})), Error);
}

TEST(Pooling, ShapesAndValues) {
  const Tensor x = channels_last(reshape(arange(32, DType::f32), {1, 2, 4, 4}));
  MaxPool2d max_pool({.kernel = 2});
  const Tensor m = max_pool(x);
  EXPECT_EQ(m.sizes(), (Dims{1, 2, 2, 2}));
  EXPECT_TRUE(m.is_channels_last());
  EXPECT_EQ(m.at(0), 5);
  EXPECT_EQ(m.at(7), 31);
  AvgPool2d avg_pool({.kernel = 3, .stride = 2, .padding = 1});
  EXPECT_EQ(avg_pool(x).sizes(), (Dims{1, 2, 2, 2}));
  EXPECT_NEAR(avg_pool(x).at(0), (0 + 1 + 4 + 5) / 9.0, 1e-6);
  AdaptiveAvgPool2d adaptive({.output = {1, 2}});
  EXPECT_EQ(adaptive(x).sizes(), (Dims{1, 2, 1, 2}));
  GlobalAvgPool global;
  EXPECT_EQ(global(x).sizes(), (Dims{1, 2}));
  EXPECT_EQ(global(x).at(1), 23.5);
}

TEST(Activations, Values) {
  const Tensor x = from_values({-2, 3}, {2});
  ReLU plain;
  LeakyReLU leaky({.negative_slope = 0.5});
  EXPECT_EQ(plain(x).at(0), 0);
  EXPECT_EQ(leaky(x).at(0), -1);
  EXPECT_EQ(leaky(x).at(1), 3);
}

TEST(Dropout, ScalesInTrainingAndPassesInEvaluation) {
  Dropout layer({.p = 0.25});
  const Tensor x = ones({10000});
  const Tensor y = layer(x);
  int64_t dropped = 0;
  for (int64_t i = 0; i < y.numel(); ++i) {
    dropped += y.at(i) == 0;
    ASSERT_TRUE(y.at(i) == 0 || std::abs(y.at(i) - 4.0 / 3) < 1e-6);
  }
  EXPECT_NEAR(static_cast<double>(dropped), 2500, 4 * std::sqrt(10000 * 0.25 * 0.75));
  layer.eval();
  EXPECT_EQ(layer(x).handle().get(), x.handle().get());
  EXPECT_THROW(Dropout({.p = 1.5}), Error);
}

TEST(Flatten, IsInLogicalOrder) {
  const Tensor x = reshape(arange(24, DType::f32), {2, 3, 2, 2});
  Flatten layer;
  const Tensor y = layer(channels_last(x));
  EXPECT_EQ(y.sizes(), (Dims{2, 12}));
  for (int64_t i = 0; i < 24; ++i) {
    EXPECT_EQ(y.at(i), static_cast<double>(i));
  }
}

TEST(Sequential, OwnsAndNamesItsModules) {
  Sequential net;
  Linear& first = net.add<Linear>({.in = 3, .out = 4});
  net.add<ReLU>();
  net.add_named<Linear>("head", {.in = 4, .out = 2});
  EXPECT_EQ(net.named_parameters()[2].first, "head.weight");
  EXPECT_EQ(net.named_parameters()[0].first, "0.weight");
  EXPECT_EQ(&net[0], &first);
  EXPECT_EQ(net(randn({5, 3})).sizes(), (Dims{5, 2}));
  EXPECT_THROW(net[3], Error);
  EXPECT_THROW(net.add(nullptr), Error);
}

TEST(ResidualBlock, ProjectsWhereShapesChange) {
  ResidualBlock same({.in = 4, .out = 4}), down({.in = 4, .out = 8, .stride = 2});
  EXPECT_EQ(same.downsample.size(), 0u);
  EXPECT_EQ(down.downsample.size(), 2u);
  const Tensor x = randn({2, 4, 6, 6});
  EXPECT_EQ(same(x).sizes(), (Dims{2, 4, 6, 6}));
  EXPECT_EQ(down(x).sizes(), (Dims{2, 8, 3, 3}));
}

TEST(Init, Statistics) {
  const init::Statistics x = init::xavier_statistics({30, 200}, 2);
  EXPECT_EQ(x.fan_in, 200);
  EXPECT_EQ(x.fan_out, 30);
  EXPECT_DOUBLE_EQ(x.std, 2 * std::sqrt(2.0 / 230));
  EXPECT_DOUBLE_EQ(x.bound, std::sqrt(3.0) * x.std);
  const init::Statistics k = init::kaiming_statistics(
      {16, 8, 3, 3}, {.a = std::sqrt(5.0), .mode = init::FanMode::fan_out});
  EXPECT_EQ(k.fan_in, 72);
  EXPECT_EQ(k.fan_out, 144);
  EXPECT_DOUBLE_EQ(k.gain, std::sqrt(1.0 / 3));
  EXPECT_DOUBLE_EQ(k.std, k.gain / 12);
  EXPECT_EQ(init::gain(init::parse_nonlinearity("selu")), 0.75);
  EXPECT_DOUBLE_EQ(init::gain(init::Nonlinearity::tanh), 5.0 / 3);
  EXPECT_THROW(init::parse_nonlinearity("swish"), Error);
  EXPECT_THROW(init::xavier_statistics({5}), Error);
}

TEST(Init, OrthogonalRowsOrColumns) {
  if (!linalg::is_available()) {
    Tensor w = ones({3, 3});
    EXPECT_THROW(init::orthogonal(w), Error);
    EXPECT_EQ(sum(w).item(), 9);  // nothing half done
    return;
  }
  for (const Dims& sizes : {Dims{8, 5}, Dims{4, 3, 2, 2}, Dims{6, 6}, Dims{1, 7}}) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16}) {
      Tensor w = empty(sizes, dtype);
      w.require_grad();
      init::orthogonal(w, 1.5);
      const Tensor m = reshape(w.detach().to(DType::f64), {sizes[0], -1});
      const bool tall = m.size(0) > m.size(1);
      const Tensor gram = tall ? matmul(transpose(m, 0, 1), m) : matmul(m, transpose(m, 0, 1));
      const Tensor off = sub(gram, mul(eye(gram.size(0), DType::f64), 2.25));
      EXPECT_LE(max(abs(off)).item(), 40 * epsilon(dtype)) << sizes.size();
    }
  }
  // The signs of r decide: without them the first element would never be positive.
  int positive = 0;
  for (int i = 0; i < 64; ++i) {
    Tensor w = empty({3, 3});
    init::orthogonal(w);
    positive += w.at(0) > 0 ? 1 : 0;
  }
  EXPECT_GT(positive, 12);
  EXPECT_LT(positive, 52);
  EXPECT_THROW(init::orthogonal(ones({3})), Error);
  EXPECT_THROW(init::orthogonal(ones({3, 3}, DType::i64)), Error);
  EXPECT_THROW(init::orthogonal(Tensor()), Error);
}

TEST(Init, DrawsHaveTheStatistics) {
  const Tensor w = empty({200, 300});
  const auto n = static_cast<double>(w.numel());
  const auto expect_std = [&](double std) {
    EXPECT_NEAR(mean(w).item(), 0, 4 * std / std::sqrt(n));
    EXPECT_NEAR(std::sqrt(mean(square(w)).item()), std, 4 * std / std::sqrt(2 * n));
  };
  init::xavier_uniform(w, 1.5);
  expect_std(init::xavier_statistics(w.sizes(), 1.5).std);
  init::kaiming_normal(w, {.nonlinearity = init::Nonlinearity::relu});
  expect_std(std::sqrt(2.0 / 300));
  Linear layer({.in = 300, .out = 200});
  double largest = 0;
  for (int64_t i = 0; i < layer.weight.numel(); ++i) {
    largest = std::max(largest, std::abs(layer.weight.at(i)));
  }
  EXPECT_LE(largest, 1 / std::sqrt(300.0));
  EXPECT_GT(largest, 0.99 / std::sqrt(300.0));
  init::constant(layer.weight, 3);
  EXPECT_EQ(layer.weight.at(7), 3);
}

TEST(Losses, MseAndAccuracy) {
  Tensor x = from_values({1, 2, 4}, {3});
  x.require_grad();
  const Tensor target = from_values({1, 0, 1}, {3});
  EXPECT_NEAR(mse_loss(x, target).item(), 13.0 / 3, 1e-6);
  EXPECT_EQ(mse_loss(x, target, Reduction::sum).item(), 13);
  EXPECT_EQ(mse_loss(x, target, Reduction::none).at(2), 9);
  mse_loss(x, target, Reduction::sum).backward();
  EXPECT_EQ(x.grad().at(2), 6);
  EXPECT_THROW(mse_loss(x, ones({2})), Error);
  EXPECT_EQ(mse_loss(cast(x, DType::f16), cast(target, DType::f16)).dtype(), DType::f32);
  const Tensor logits = from_values({1, 2, 5, 0, 3, 3}, {3, 2});
  EXPECT_NEAR(accuracy(logits, cast(from_values({1, 1, 0}, {3}), DType::i64)), 2.0 / 3, 1e-12);
}

TEST(Layers, ErrorsShowShapesAndRanges) {
  const Tensor x = ones({2, 3}), image = ones({1, 3, 4, 4}), nothing = ones({0, 3});
  const std::pair<std::function<void()>, const char*> cases[] = {
      {[&] {
         (void)linear(x, ones({4, 3}), ones({3}));
       },
       "linear: got a bias of shape [3] and dtype f32, expected [4] of dtype f32"},
      {[&] {
         (void)conv2d(image, ones({2, 3, 1, 1}), ones({2, 1}));
       },
       "conv2d: got a bias of shape [2, 1] and dtype f32, expected [2] of dtype f32"},
      {[&] {
         (void)feedforward(x, ones({4, 3}), ones({3}), ones({3, 4}), {});
       },
       "feedforward: got biases of shapes [3] and [], expected [4] and [3] of dtype f32"},
      {[&] {
         (void)reshape(nothing, {0, -1});
       },
       "reshape: got shape [0, 3] and sizes [0, -1], expected no 0 beside -1, which then could be "
       "any size"},
      {[&] {
         (void)reshape(x, {4, -1});
       },
       "reshape: got shape [2, 3] and sizes [4, -1], expected sizes whose product divides 6"},
      {[&] { (void)select(x, 1, 3); },
       "select: got index 3 in dimension 1 of shape [2, 3], expected -3 to 2"},
      {[&] { (void)select(nothing, 0, 0); },
       "select: got index 0 in dimension 0 of shape [0, 3], expected a dimension with elements"},
  };
  for (const auto& [run, message] : cases) {
    try {
      run();
      ADD_FAILURE() << message;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), message);
    }
  }
}

}  // namespace
}  // namespace binade::nn::layers_test
