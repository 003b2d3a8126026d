// TransformerEncoderLayer against its formula, written with its own layers and other ops: both
// places of the norms, both activations, masks, layouts, dropout.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/transformer.h>
#include <gtest/gtest.h>

namespace binade::nn {
namespace {

double largest_difference(const Tensor& a, const Tensor& b) { return amax(abs(sub(a, b))).item(); }

TransformerEncoderLayerOptions options_of(bool norm_first, FeedforwardActivation activation) {
  return {.embed = 8,
          .heads = 2,
          .feedforward = 12,
          .dropout = 0,
          .activation = activation,
          .batch_first = true,
          .norm_first = norm_first};
}

// x [batch, length, embed] in f32.
Tensor encoded(TransformerEncoderLayer& layer, const Tensor& x, bool norm_first,
               FeedforwardActivation activation, const AttentionMask& mask) {
  const auto normalised = [](const Tensor& h, const LayerNorm& norm) {
    const Tensor centred = h - mean(h, {-1}, true);
    const Tensor u = div(centred, sqrt(mean(square(centred), {-1}, true) + 1e-5));
    return u * norm.weight + norm.bias;
  };
  const auto attention = [&](const Tensor& h) { return layer.self_attn.attend(h, h, h, mask); };
  const auto feedforward = [&](const Tensor& h) {
    const Tensor inner = matmul(h, transpose(layer.linear1.weight, 0, 1)) + layer.linear1.bias;
    const Tensor gate = activation == FeedforwardActivation::relu
                            ? clamp(inner, 0, 1e30)
                            : inner * (erf(inner * 0.70710678118654752) + 1) * 0.5;
    return matmul(gate, transpose(layer.linear2.weight, 0, 1)) + layer.linear2.bias;
  };
  if (norm_first) {
    const Tensor h = x + attention(normalised(x, layer.norm1));
    return h + feedforward(normalised(h, layer.norm2));
  }
  const Tensor h = normalised(x + attention(x), layer.norm1);
  return normalised(h + feedforward(h), layer.norm2);
}

TEST(TransformerEncoderLayer, MatchesItsFormula) {
  manual_seed(3);
  const Tensor x = randn({2, 5, 8}), dy = randn({2, 5, 8});
  for (bool norm_first : {false, true}) {
    for (auto activation : {FeedforwardActivation::relu, FeedforwardActivation::gelu}) {
      TransformerEncoderLayer layer(options_of(norm_first, activation));
      for (const Tensor& t : {layer.norm1.weight, layer.norm2.weight, layer.norm2.bias}) {
        const NoGradGuard no_grad;
        Tensor(t).copy_(rand(t.sizes()));
      }
      for (bool causal : {false, true}) {
        const AttentionMask mask{.is_causal = causal};
        Tensor a = x.detach().require_grad(), b = x.detach().require_grad();
        const Tensor got = layer.encode(a, mask);
        const Tensor want = encoded(layer, b, norm_first, activation, mask);
        EXPECT_LT(largest_difference(got, want), 1e-5) << norm_first << causal;
        sum(got * dy).backward();
        sum(want * dy).backward();
        EXPECT_LT(largest_difference(a.grad(), b.grad()), 1e-4) << norm_first << causal;
      }
    }
  }
}

// As in PyTorch's layer: true is where attention is not allowed.
TEST(TransformerEncoderLayer, ABoolMaskIsTrueWhereMasked) {
  manual_seed(9);
  TransformerEncoderLayer layer(options_of(true, FeedforwardActivation::gelu));
  const Tensor x = randn({2, 3, 8});
  const Tensor later = from_values({0, 1, 1, 0, 0, 1, 0, 0, 0}, {3, 3}, DType::boolean);
  EXPECT_LT(
      largest_difference(layer.encode(x, {.mask = later}), layer.encode(x, {.is_causal = true})),
      1e-5);
  EXPECT_GT(largest_difference(layer.encode(x, {.mask = later}), layer(x)), 1e-3);
}

TEST(TransformerEncoderLayer, OptionsChangeTheResult) {
  manual_seed(4);
  const Tensor x = randn({2, 5, 8});
  TransformerEncoderLayer post(options_of(false, FeedforwardActivation::relu)),
      pre(options_of(true, FeedforwardActivation::relu)),
      smooth(options_of(false, FeedforwardActivation::gelu));
  pre.load_state(post.state());
  smooth.load_state(post.state());
  EXPECT_GT(largest_difference(post(x), pre(x)), 1e-3);
  EXPECT_GT(largest_difference(post(x), smooth(x)), 1e-4);
}

TEST(TransformerEncoderLayer, SequenceFirstIsTheTransposedCall) {
  manual_seed(5);
  auto options = options_of(false, FeedforwardActivation::gelu);
  TransformerEncoderLayer batch_first(options);
  options.batch_first = false;
  TransformerEncoderLayer sequence_first(options);
  sequence_first.load_state(batch_first.state());
  const Tensor x = randn({2, 5, 8});
  const Tensor y = transpose(sequence_first(transpose(x, 0, 1)), 0, 1);
  EXPECT_LT(largest_difference(batch_first(x), y), 1e-6);
}

TEST(TransformerEncoderLayer, DropoutInTrainingAlone) {
  manual_seed(6);
  auto options = options_of(true, FeedforwardActivation::relu);
  options.dropout = 0.5;
  TransformerEncoderLayer layer(options);
  const Tensor x = randn({2, 5, 8});
  EXPECT_GT(largest_difference(layer(x), layer(x)), 1e-3);
  layer.eval();
  EXPECT_EQ(largest_difference(layer(x), layer(x)), 0);
}

}  // namespace
}  // namespace binade::nn
