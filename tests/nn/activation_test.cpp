// Activation layers compute their op with their options, which default to PyTorch's.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/activation.h>
#include <gtest/gtest.h>

#include <cmath>

#include <tests/support/error_of.h>

namespace binade::nn::activation_test {
namespace {

const Tensor& input() {
  static const Tensor x = from_values({-25, -3.5, -1, -0.25, 0, 0.5, 1.5, 4, 7, 30}, {2, 5});
  return x;
}

void expect_same(Module& layer, const Tensor& expected) {
  const Tensor y = layer(input());
  ASSERT_EQ(y.sizes(), expected.sizes());
  for (int64_t i = 0; i < y.numel(); ++i) {
    EXPECT_EQ(y.at(i), expected.at(i)) << i;
  }
}

TEST(Activation, PlainLayers) {
  ReLU6 relu6_layer;
  Sigmoid sigmoid_layer;
  Tanh tanh_layer;
  SiLU silu_layer;
  Hardswish hardswish_layer;
  Mish mish_layer;
  LogSigmoid log_sigmoid_layer;
  expect_same(relu6_layer, relu6(input()));
  expect_same(sigmoid_layer, sigmoid(input()));
  expect_same(tanh_layer, binade::tanh(input()));
  expect_same(silu_layer, silu(input()));
  expect_same(hardswish_layer, hardswish(input()));
  expect_same(mish_layer, mish(input()));
  expect_same(log_sigmoid_layer, log_sigmoid(input()));
  SELU selu_layer;
  Softsign softsign_layer;
  Hardsigmoid hardsigmoid_layer;
  expect_same(selu_layer, selu(input()));
  expect_same(softsign_layer, softsign(input()));
  expect_same(hardsigmoid_layer, hardsigmoid(input()));
}

TEST(Activation, LayersWithOptions) {
  GELU exact, approximate({.approximate = "tanh"});
  expect_same(exact, gelu(input()));
  expect_same(approximate, gelu_tanh(input()));
  ELU elu_layer, flat({.alpha = 0.25});
  expect_same(elu_layer, elu(input(), 1));
  expect_same(flat, elu(input(), 0.25));
  CELU celu_layer, narrow({.alpha = 0.25});
  expect_same(celu_layer, celu(input(), 1));
  expect_same(narrow, celu(input(), 0.25));
  Softplus softplus_layer, sharp({.beta = 2, .threshold = 3});
  expect_same(softplus_layer, softplus(input(), 1, 20));
  expect_same(sharp, softplus(input(), 2, 3));
  Hardtanh hardtanh_layer, wide({.min_val = -2, .max_val = 5});
  expect_same(hardtanh_layer, clamp(input(), -1, 1));
  expect_same(wide, clamp(input(), -2, 5));
}

TEST(Activation, BadOptionsAreErrors) {
  EXPECT_THROW(GELU({.approximate = "sine"}), Error);
  EXPECT_THROW(CELU({.alpha = 0}), Error);
  EXPECT_THROW(celu(input(), 0), Error);
  EXPECT_THROW(Hardtanh({.min_val = 1, .max_val = 1}), Error);
}

TEST(Dropout2d, DropsWholeChannelsInTrainingAlone) {
  manual_seed(5);
  Dropout2d layer({.p = 0.25});
  const Tensor y = layer(ones({40, 5, 2, 3}));
  int64_t dropped = 0;
  for (int64_t channel = 0; channel < 200; ++channel) {
    const double first = y.at(6 * channel);
    EXPECT_TRUE(first == 0 || std::abs(first - 4.0 / 3) < 1e-6) << first;
    dropped += first == 0;
    for (int64_t i = 1; i < 6; ++i) {
      EXPECT_EQ(y.at(6 * channel + i), first);
    }
  }
  EXPECT_GT(dropped, 25);
  EXPECT_LT(dropped, 80);
  layer.eval();
  EXPECT_EQ(layer(ones({2, 5, 2, 3})).at(7), 1);
  layer.train();
  EXPECT_THROW(layer(ones({2, 5})), Error);
  EXPECT_THROW(Dropout2d({.p = -0.1}), Error);
}

TEST(Activations, WithOptionsAndParameters) {
  const Tensor x = randn({2, 4, 3});
  EXPECT_NEAR(sum(Softmax({.dim = 1})(x)).item(), 6, 1e-5);
  EXPECT_NEAR(exp(LogSoftmax()(x)).at(5), Softmax()(x).at(5), 1e-6);
  EXPECT_EQ(Identity()(x).at(3), x.at(3));
  EXPECT_EQ(GLU({.dim = 1})(x).sizes(), (Dims{2, 2, 3}));
  EXPECT_THROW(GLU()(x), Error);
  EXPECT_EQ(error_of([&] {
              GLU({.dim = 3})
              (x);
            }),
            text("GLU: got shape ", x.sizes(), " and dim = 3, expected an even size there"));
  PReLU one, each({.channels = 4, .init = 0.5});
  EXPECT_EQ(one.weight.at(0), 0.25);
  EXPECT_NEAR(each(full({1, 4, 2}, -2.0)).at(7), -1, 1e-6);
  sum(each(full({1, 4, 2}, -2.0))).backward();
  EXPECT_NEAR(each.weight.grad().at(3), -4, 1e-6);
  EXPECT_THROW(each(randn({2, 3})), Error);
}

}  // namespace
}  // namespace binade::nn::activation_test
