// Layers of normalisation, convolution over sequences, transposed convolution and pooling over
// sequences: what they register, shapes, and that their options reach the ops.
#include <binade/core/ops.h>
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/conv.h>
#include <binade/nn/fusion_internal.h>
#include <binade/nn/norm.h>
#include <binade/nn/pool.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace binade::nn::norm_test {
namespace {

std::vector<std::string> names_of(const Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : module.named_parameters()) {
    names.push_back(name);
  }
  return names;
}

void expect_equal(const Tensor& got, const Tensor& expected) {
  ASSERT_EQ(got.sizes(), expected.sizes());
  for (int64_t i = 0; i < got.numel(); ++i) {
    ASSERT_EQ(got.at(i), expected.at(i)) << "element " << i;
  }
}

using Names = std::vector<std::string>;

TEST(LayerNorm, NormalizesTheLastDimensions) {
  LayerNorm layer({.normalized_shape = {3, 8}, .eps = 1e-3});
  EXPECT_EQ(names_of(layer), (Names{"weight", "bias"}));
  EXPECT_EQ(layer.weight.sizes(), (Dims{3, 8}));
  const Tensor x = randn({5, 3, 8}) * 2 + 7;
  const Tensor y = layer(x);
  expect_equal(y, layer_norm(x, {3, 8}, {}, {}, 1e-3));
  const Tensor means = mean(reshape(y, {5, 24}), {1});
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(means.at(i), 0, 1e-5);
  }
  {
    NoGradGuard guard;
    layer.weight.fill_(2);
    layer.bias.fill_(1);
  }
  EXPECT_NEAR(mean(layer(x)).item(), 1, 1e-5);
  EXPECT_EQ(names_of(LayerNorm({.normalized_shape = {8}, .bias = false})), (Names{"weight"}));
  EXPECT_EQ(names_of(LayerNorm({.normalized_shape = {8}, .affine = false})), Names{});
  EXPECT_THROW(layer(randn({3, 7})), Error);
  EXPECT_THROW(LayerNorm({.normalized_shape = {}}), Error);
  EXPECT_THROW(LayerNorm({.normalized_shape = {4, 0}}), Error);
}

// relu(norm(x) + residual) in one pass, as library models run it.
Tensor run_relu(BatchNorm& norm, const Tensor& x, const Tensor& residual) {
  return Fusion::run({.first = norm, .residual = residual, .relu = true}, x);
}

// Outputs and gradients of relu(norm(x) + residual), by one op or by three.
struct NormReluRun {
  Tensor y, dx, dresidual, dweight, dbias, running_mean;
};
NormReluRun run_norm_relu(bool fused, bool training, bool with_residual, DType dtype) {
  manual_seed(7);
  BatchNorm2d norm({.channels = 5});
  norm.to(dtype);
  norm.train(training);
  fill_normal(norm.weight, 1, 0.3);
  fill_normal(norm.bias, 0, 0.3);
  Tensor x = channels_last(randn({4, 5, 3, 6}, dtype)).require_grad();
  Tensor residual =
      with_residual ? channels_last(randn({4, 5, 3, 6}, dtype)).require_grad() : Tensor();
  const Tensor dy = randn({4, 5, 3, 6}, dtype);
  norm.parameters();
  NormReluRun run;
  if (fused) {
    run.y = run_relu(norm, x, residual);
  } else {
    const Tensor y = norm(x);
    run.y = relu(residual.defined() ? y + residual : y);
  }
  run.y.backward(dy);
  run.dx = x.grad(), run.dresidual = with_residual ? residual.grad() : x.grad();
  run.dweight = norm.weight.grad(), run.dbias = norm.bias.grad();
  run.running_mean = norm.running_mean;
  return run;
}

void expect_near(const Tensor& got, const Tensor& expected, double bound, const char* what) {
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  for (int64_t i = 0; i < got.numel(); ++i) {
    ASSERT_NEAR(got.at(i), expected.at(i), bound) << what << " " << i;
  }
}

TEST(BatchNorm2d, ReluAndResidualInOnePassAreTheSameFunction) {
  for (DType dtype : {DType::f64, DType::f32}) {
    const double bound = dtype == DType::f64 ? 1e-12 : 2e-5;
    for (bool training : {true, false}) {
      for (bool residual : {true, false}) {
        const NormReluRun one = run_norm_relu(true, training, residual, dtype),
                          three = run_norm_relu(false, training, residual, dtype);
        expect_near(one.y, three.y, bound, "y");
        expect_near(one.dx, three.dx, bound, "dx");
        expect_near(one.dresidual, three.dresidual, bound, "dresidual");
        expect_near(one.dweight, three.dweight, 10 * bound, "dweight");
        expect_near(one.dbias, three.dbias, 10 * bound, "dbias");
        expect_near(one.running_mean, three.running_mean, bound, "running_mean");
      }
    }
  }
}

TEST(BatchNorm2d, ReluInEvaluationWithoutGradients) {
  BatchNorm2d norm({.channels = 3});
  norm.eval();
  fill_normal(norm.running_mean, 0, 1);
  const Tensor x = randn({2, 3, 4, 4}), residual = randn({2, 3, 4, 4});
  const Tensor expected = relu(norm(x) + residual).detach();
  NoGradGuard no_grad;
  expect_near(run_relu(norm, x, residual), expected, 1e-6, "y");
  EXPECT_THROW(run_relu(norm, x, randn({2, 3, 4, 5})), Error);
  EXPECT_THROW(run_relu(norm, randn({2, 3}), {}), Error);
  EXPECT_THROW(run_relu(norm, {}, {}), Error);
}

TEST(RMSNorm, HasUnitMeanSquare) {
  RMSNorm layer({.normalized_shape = {16}});
  EXPECT_EQ(names_of(layer), (Names{"weight"}));
  const Tensor x = randn({4, 16}) * 1e-2;
  EXPECT_NEAR(mean(square(layer(x))).item(), 1, 0.02);  // 0.91 with an eps of 1e-5
  expect_equal(layer(x), rms_norm(x, {16}, {}, std::numeric_limits<float>::epsilon()));
  RMSNorm large_eps({.normalized_shape = {16}, .eps = 1});
  EXPECT_LT(mean(square(large_eps(x))).item(), 1e-3);
  EXPECT_EQ(names_of(RMSNorm({.normalized_shape = {16}, .affine = false})), Names{});
}

TEST(GroupNorm, NormalizesGroupsOfChannels) {
  GroupNorm layer({.groups = 2, .channels = 6});
  EXPECT_EQ(names_of(layer), (Names{"weight", "bias"}));
  const Tensor x = channels_last(randn({3, 6, 4, 5}) * 2 + 1);
  const Tensor y = layer(x);
  EXPECT_TRUE(y.is_channels_last());
  const Tensor means = mean(reshape(y, {6, 60}), {1});
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(means.at(i), 0, 1e-5);
  }
  EXPECT_THROW(layer(randn({3, 4, 4, 5})), Error);
  EXPECT_THROW(GroupNorm({.groups = 4, .channels = 6}), Error);
  EXPECT_THROW(GroupNorm({.groups = 0, .channels = 6}), Error);
}

TEST(InstanceNorm, NormalizesChannels) {
  InstanceNorm2d plain({.channels = 3});
  EXPECT_EQ(names_of(plain), Names{});
  InstanceNorm2d layer({.channels = 3, .affine = true});
  EXPECT_EQ(names_of(layer), (Names{"weight", "bias"}));
  const Tensor x = randn({2, 3, 4, 5}) + 3;
  expect_equal(layer(x), instance_norm(x));
  EXPECT_NEAR(mean(square(plain(x))).item(), 1, 1e-3);
  InstanceNorm1d sequences({.channels = 3});
  EXPECT_EQ(sequences(randn({2, 3, 9})).sizes(), (Dims{2, 3, 9}));
  EXPECT_THROW(sequences(x), Error);
  EXPECT_THROW(plain(randn({2, 4, 4, 5})), Error);
}

TEST(BatchNorm1d, TakesVectorsAndSequences) {
  BatchNorm1d layer({.channels = 3, .momentum = 1});
  const Tensor x = randn({64, 3}) * 3 + 5;
  EXPECT_NEAR(mean(square(layer(x))).item(), 1, 1e-3);
  EXPECT_NEAR(mean(layer.running_mean).item(), mean(x).item(), 1e-4);
  EXPECT_EQ(layer(randn({4, 3, 7})).sizes(), (Dims{4, 3, 7}));
  EXPECT_THROW(layer(randn({4, 3, 7, 7})), Error);
}

// Weights stay f32 with f16 activations, and so do their gradients.
TEST(Norms, KeepTheirParametersUnderMixed) {
  LayerNorm layer({.normalized_shape = {8}});
  GroupNorm group({.groups = 2, .channels = 4});
  const Tensor x = cast(randn({3, 8}), DType::f16), image = cast(randn({2, 4, 3, 3}), DType::f16);
  const Tensor y = layer(x), z = group(image);
  EXPECT_EQ(y.dtype(), DType::f16);
  EXPECT_EQ(z.dtype(), DType::f16);
  sum(y * y).backward();
  sum(z * z).backward();
  EXPECT_EQ(layer.weight.grad().dtype(), DType::f32);
  EXPECT_EQ(group.bias.grad().dtype(), DType::f32);
}

TEST(Conv1d, ShapesAndMemoryOrder) {
  Conv1d layer({.in = 4, .out = 6, .kernel = 3, .stride = 2, .padding = 1, .groups = 2});
  EXPECT_EQ(layer.weight.sizes(), (Dims{6, 2, 3}));
  EXPECT_EQ(names_of(layer), (Names{"weight", "bias"}));
  EXPECT_LE(std::abs(layer.bias.at(0)), 1 / std::sqrt(6.0));
  EXPECT_EQ(layer(randn({2, 4, 9})).sizes(), (Dims{2, 6, 5}));
  EXPECT_THROW(layer(randn({2, 4, 9, 9})), Error);
  EXPECT_THROW(Conv1d({.in = 3, .out = 4, .kernel = 3, .groups = 2}), Error);
  EXPECT_FALSE(Conv1d({.in = 3, .out = 4, .kernel = 3, .bias = false}).bias.defined());
}

TEST(ConvTranspose, UndoesTheShapesOfConvolution) {
  Conv2d down({.in = 4, .out = 6, .kernel = {3, 5}, .stride = 2, .padding = {1, 2}});
  ConvTranspose2d up({.in = 6,
                      .out = 4,
                      .kernel = {3, 5},
                      .stride = 2,
                      .padding = {1, 2},
                      .output_padding = 1,
                      .groups = 2});
  EXPECT_EQ(up.weight.sizes(), (Dims{6, 2, 3, 5}));
  const Tensor x = randn({2, 4, 8, 10});
  EXPECT_EQ(up(down(x)).sizes(), x.sizes());
  EXPECT_TRUE(up(down(x)).is_channels_last());
  ConvTranspose1d sequence({.in = 3, .out = 2, .kernel = 4, .stride = 2, .padding = 1});
  EXPECT_EQ(sequence(randn({2, 3, 5})).sizes(), (Dims{2, 2, 10}));
  EXPECT_THROW(ConvTranspose2d({.in = 4, .out = 4, .kernel = 3, .output_padding = 1}), Error);
  EXPECT_THROW(ConvTranspose1d({.in = 4, .out = 4, .kernel = 0}), Error);
}

TEST(Pooling1d, ShapesAndValues) {
  const Tensor x = reshape(arange(12, DType::f32), {1, 2, 6});
  MaxPool1d max_pool({.kernel = 2});
  const Tensor m = max_pool(x);
  EXPECT_EQ(m.sizes(), (Dims{1, 2, 3}));
  EXPECT_EQ(m.at(0), 1);
  EXPECT_EQ(m.at(5), 11);
  AvgPool1d avg_pool({.kernel = 3, .stride = 2, .padding = 1});
  EXPECT_EQ(avg_pool(x).sizes(), (Dims{1, 2, 3}));
  EXPECT_NEAR(avg_pool(x).at(0), 1.0 / 3, 1e-6);
  EXPECT_THROW(max_pool(randn({2, 3})), Error);
  EXPECT_THROW(avg_pool(randn({2, 3, 4, 5})), Error);
}

}  // namespace
}  // namespace binade::nn::norm_test
