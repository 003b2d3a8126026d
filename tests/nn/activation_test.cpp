// Activation layers compute their op with their options, which default to PyTorch's.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/activation.h>
#include <gtest/gtest.h>

namespace binade::nn {
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

}  // namespace
}  // namespace binade::nn
