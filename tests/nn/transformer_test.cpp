// Key padding, grouped queries, decoders; TransformerEncoderLayer against its formula, written with
// its own layers and other ops: both places of the norms, both activations, masks, layouts,
// dropout.
#include <binade/core/ops.h>
#include <binade/core/ops/attention.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/transformer.h>
#include <gtest/gtest.h>

#include <cmath>

namespace binade::nn::transformer_test {
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

// True is where attention is not allowed, as in PyTorch's layer.
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

// Values at padded keys do not change the result, whatever the kinds of the masks.
TEST(KeyPadding, HidesKeys) {
  manual_seed(11);
  MultiheadAttention layer({.embed = 8, .heads = 2, .batch_first = true});
  const Tensor query = randn({2, 3, 8}), key = randn({2, 4, 8});
  const Tensor padding = from_values({0, 0, 0, 1, 0, 1, 0, 0}, {2, 4}, DType::boolean);
  const Tensor other = where(reshape(padding, {2, 4, 1}), randn({2, 4, 8}), key);
  const Tensor bools = from_values({0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, {3, 4}, DType::boolean);
  const Tensor scores = randn({3, 4});
  const Tensor infinite = masked_fill(zeros({2, 4}), padding, -INFINITY);
  for (const Tensor& mask : {Tensor(), bools, scores}) {
    const Tensor want = layer(query, key, key, {.mask = mask, .key_padding = padding});
    const Tensor got = layer(query, other, other, {.mask = mask, .key_padding = padding});
    EXPECT_LT(largest_difference(got, want), 1e-6);
    const Tensor added = layer(query, key, key, {.mask = mask, .key_padding = infinite});
    EXPECT_LT(largest_difference(added, want), 1e-6);
    EXPECT_GT(largest_difference(layer(query, key, key, {.mask = mask}), want), 1e-3);
  }
  try {
    layer(query, key, key, {.key_padding = transpose(padding, 0, 1)});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("got key_padding bool [4, 2], expected bool or "
                        "floating [batch, keys] = [2, 4]"),
              std::string::npos)
        << error.what();
  }
}

// Each head of keys and values serves two heads of queries: as the layer whose heads are repeated.
TEST(GroupedQueries, AreRepeatedHeads) {
  manual_seed(12);
  MultiheadAttention grouped({.embed = 8, .heads = 4, .batch_first = true, .kv_heads = 2});
  MultiheadAttention whole({.embed = 8, .heads = 4, .batch_first = true});
  EXPECT_EQ(grouped.k_proj_weight.sizes(), (Dims{4, 8}));
  EXPECT_EQ(grouped.in_proj_bias.sizes(), (Dims{16}));
  const auto repeated = [](const Tensor& w) {  // rows of head 0, 0, 1, 1
    const std::vector<Tensor> heads = split(w, 2, 0);
    return cat({heads[0], heads[0], heads[1], heads[1]}, 0);
  };
  {
    const NoGradGuard guard;
    grouped.in_proj_bias.copy_(randn({16}));
    const std::vector<Tensor> bias = split(grouped.in_proj_bias, {8, 4, 4}, 0);
    whole.load_state(
        {{"in_proj_weight", cat({grouped.q_proj_weight, repeated(grouped.k_proj_weight),
                                 repeated(grouped.v_proj_weight)},
                                0)},
         {"in_proj_bias", cat({bias[0], repeated(bias[1]), repeated(bias[2])}, 0)},
         {"out_proj.weight", grouped.out_proj.weight},
         {"out_proj.bias", grouped.out_proj.bias}});
  }
  const Tensor x = randn({2, 5, 8}), dy = randn({2, 5, 8});
  const Tensor mask = randn({2, 4, 5, 5});
  for (const AttentionMask& given :
       {AttentionMask{}, AttentionMask{.is_causal = true}, AttentionMask{.mask = mask},
        AttentionMask{.mask = slice(mask, 1, 0, 1)}}) {
    Tensor a = x.detach().require_grad(), b = x.detach().require_grad();
    const Tensor got = grouped(a, a, a, given), want = whole(b, b, b, given);
    EXPECT_LT(largest_difference(got, want), 1e-5);
    sum(got * dy).backward();
    sum(want * dy).backward();
    EXPECT_LT(largest_difference(a.grad(), b.grad()), 1e-4);
  }
  EXPECT_THROW(MultiheadAttention({.embed = 8, .heads = 4, .kv_heads = 3}), Error);
  EXPECT_THROW(scaled_dot_product_attention(randn({4, 2, 3}), randn({3, 2, 3}), randn({3, 2, 3}),
                                            {.enable_gqa = true}),
               Error);
}

TEST(Transformer, StacksHaveNamesAndErrors) {
  manual_seed(13);
  const TransformerLayerOptions layer{.embed = 8, .heads = 2, .feedforward = 12, .dropout = 0.1};
  TransformerEncoder encoder({.layer = layer, .layers = 2, .norm = true});
  TransformerDecoder decoder({.layer = layer, .layers = 2});
  EXPECT_EQ(encoder.named_parameters().back().first, "norm.bias");
  EXPECT_EQ(decoder.named_parameters().back().first, "layers.1.norm3.bias");
  const Tensor memory = encoder(randn({5, 3, 8})), target = randn({4, 3, 8});
  const Tensor y = decoder(target, memory, {.self = {.is_causal = true}});
  EXPECT_EQ(y.sizes(), target.sizes());
  sum(y * randn(y.sizes())).backward();
  EXPECT_TRUE(encoder.layers[0].linear1.weight.grad().defined());
  Module& base = decoder;
  EXPECT_THROW(base(target), Error);
  try {
    decoder(target, randn({5, 3, 7}));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("(in module layers.0.multihead_attn)"),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(TransformerEncoder({.layer = layer, .layers = 0}), Error);
}

}  // namespace
}  // namespace binade::nn::transformer_test
