// Embedding, and the layers that change sizes.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/fault.h>
#include <binade/nn/embedding.h>
#include <binade/nn/resize.h>
#include <gtest/gtest.h>

#include <cmath>

#include <tests/support/error_of.h>

namespace binade::nn::embedding_test {
namespace {

TEST(Embedding, LooksUpRowsAndLeavesPaddingAlone) {
  manual_seed(1);
  Embedding layer({.count = 5, .width = 3, .padding_idx = -1});
  EXPECT_EQ(layer.named_parameters()[0].first, "weight");
  EXPECT_EQ(layer.weight.sizes(), (Dims{5, 3}));
  EXPECT_EQ(layer.weight.at(12), 0);
  EXPECT_NE(layer.weight.at(0), 0);
  layer.parameters();
  const Tensor index = from_values({4, 1, 1, 0}, {2, 2}, DType::i64);
  const Tensor y = layer(index);
  ASSERT_EQ(y.sizes(), (Dims{2, 2, 3}));
  EXPECT_EQ(y.at(4), layer.weight.at(4));
  y.backward(ones({2, 2, 3}));
  const Tensor gradient = layer.weight.grad();
  const double expected[] = {1, 2, 0, 0, 0};
  for (int64_t row = 0; row < 5; ++row) {
    EXPECT_EQ(gradient.at(3 * row), expected[row]) << row;
  }
  EXPECT_THROW(layer(from_values({5}, {1}, DType::i64)), kernels::IndexError);
  EXPECT_THROW(layer(ones({2})), Error);
  EXPECT_THROW(Embedding({.count = 0, .width = 3}), Error);
  EXPECT_THROW(Embedding({.count = 4, .width = 3, .padding_idx = 4}), Error);
}

TEST(EmbeddingBag, ReducesRowsPerBag) {
  manual_seed(1);
  EmbeddingBag bags({.count = 5, .width = 3, .mode = BagMode::sum, .padding_idx = 0});
  EXPECT_EQ(bags.weight.at(0), 0);
  const Tensor index = from_values({1, 2, 0, 2}, {4}, DType::i64);
  Tensor offsets = from_values({0, 3, 3}, {3}, DType::i64);
  const Tensor y = bags(index, offsets);
  ASSERT_EQ(y.sizes(), (Dims{3, 3}));
  EXPECT_EQ(y.at(0), double(float(bags.weight.at(3)) + float(bags.weight.at(6))));
  EXPECT_EQ(y.at(3), 0);  // an empty bag
  EXPECT_EQ(y.at(6), bags.weight.at(6));
  const Tensor factors = from_values({2, 0, 1, 1}, {4});
  EXPECT_EQ(bags(index, offsets, factors).at(0), 2 * bags.weight.at(3));
  Module& base = bags;
  offsets = from_values({0, 2}, {2}, DType::i64);
  EXPECT_TRUE(equal(base(reshape(index, {2, 2})), bags(index, offsets)));
  bags.parameters();
  bags(index, offsets).backward(ones({2, 3}));
  EXPECT_EQ(bags.weight.grad().to_vector<float>(),
            (std::vector<float>{0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(EmbeddingBag({.count = 4, .width = 2, .include_last_offset = true})(
                from_values({1, 3}, {2}, DType::i64), from_values({0, 1, 2}, {3}, DType::i64))
                .sizes(),
            (Dims{2, 2}));
  EXPECT_THROW(EmbeddingBag({.count = 4, .width = 0}), Error);
}

TEST(Upsample, BySizeAndByFactor) {
  const Tensor x = channels_last(reshape(arange(8, DType::f32), {1, 2, 2, 2}));
  const Tensor y = Upsample({.scale_factor = 2.0})(x);
  ASSERT_EQ(y.sizes(), (Dims{1, 2, 4, 4}));
  EXPECT_TRUE(y.is_channels_last());
  EXPECT_EQ(y.at(3), 1);
  EXPECT_EQ(y.at(31), 7);
  Upsample corners({.size = Pair{3, 5}, .mode = Interpolation::bilinear, .align_corners = true});
  EXPECT_EQ(corners(x).sizes(), (Dims{1, 2, 3, 5}));
  EXPECT_EQ(corners(x).at(7), 1.5);
  EXPECT_THROW(Upsample({}), Error);
  EXPECT_THROW(Upsample({.size = Pair{3}, .scale_factor = 2.0}), Error);
  EXPECT_THROW(Upsample({.size = Pair{3, 0}}), Error);
  EXPECT_THROW(Upsample({.scale_factor = INFINITY}), Error);
  EXPECT_THROW(Upsample({.scale_factor = 1e300}), Error);
  EXPECT_THROW(corners(ones({2, 2})), Error);
}

TEST(Pads, ZerosAndReflections) {
  const Tensor x = reshape(arange(9, DType::f32), {1, 1, 3, 3});
  ZeroPad2d zeros({.left = 1, .bottom = 2});
  EXPECT_EQ(zeros(x).sizes(), (Dims{1, 1, 5, 4}));
  EXPECT_EQ(zeros(x).at(0), 0);
  EXPECT_EQ(zeros(x).at(7), 5);
  ReflectionPad2d mirror({.left = 2, .right = 0, .top = 1});
  EXPECT_EQ(mirror(x).sizes(), (Dims{1, 1, 4, 5}));
  EXPECT_EQ(mirror(x).at(0), 5);
  EXPECT_THROW(ReflectionPad2d({.left = 3})(x), Error);
  EXPECT_THROW(zeros(ones({3})), Error);
}

TEST(Unflatten, InfersOneSize) {
  EXPECT_EQ(Unflatten({.dim = 1, .sizes = {2, -1}})(ones({3, 8})).sizes(), (Dims{3, 2, 4}));
  EXPECT_EQ(Unflatten({.dim = -1, .sizes = {2, 4}})(ones({3, 8})).sizes(), (Dims{3, 2, 4}));
  EXPECT_THROW(Unflatten({.dim = 1, .sizes = {3, -1}})(ones({3, 8})), Error);
  EXPECT_THROW(Unflatten({.dim = 2, .sizes = {3}})(ones({3, 8})), Error);
  EXPECT_EQ(error_of([] {
              Unflatten({.dim = 1, .sizes = {INT64_MAX, 3}})(ones({3, 8}));
            }),
            text("Unflatten: got sizes ", Dims{INT64_MAX, 3}, ", expected a product of 8"));
}

}  // namespace
}  // namespace binade::nn::embedding_test
