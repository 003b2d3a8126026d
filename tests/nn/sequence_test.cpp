// MultiheadAttention, RNN, GRU and LSTM against the formulas, written with other ops.
#include <binade/core/ops.h>
#include <binade/core/ops/attention.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/attention.h>
#include <binade/nn/rnn.h>
#include <gtest/gtest.h>
#include <tests/support/error_of.h>

#include <cmath>

namespace binade::nn::sequence_test {
namespace {

double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  double largest = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    largest = std::max(largest, std::abs(a.at(i) - b.at(i)));
  }
  return largest;
}

std::vector<std::string> names_of(const Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : module.named_parameters()) {
    names.push_back(name);
  }
  return names;
}

// Heads one by one, batch first.
Tensor attention_of(const MultiheadAttention& layer, const Tensor& query, const Tensor& key,
                    int64_t heads, const Tensor& added) {
  const std::vector<Tensor> w = split(layer.in_proj_weight, query.size(2), 0);
  const std::vector<Tensor> b = split(layer.in_proj_bias, query.size(2), 0);
  const int64_t size = query.size(2) / heads;
  std::vector<Tensor> parts;
  for (int64_t head = 0; head < heads; ++head) {
    const auto part = [&](const Tensor& x, size_t i) {
      return slice(linear(x, w[i], b[i]), 2, head * size, (head + 1) * size);
    };
    Tensor scores = matmul(part(query, 0), transpose(part(key, 1), 1, 2)) / std::sqrt(double(size));
    scores = added.defined() ? scores + added : scores;
    parts.push_back(matmul(softmax(scores), part(key, 2)));
  }
  return linear(cat(parts, 2), layer.out_proj.weight, layer.out_proj.bias);
}

TEST(MultiheadAttention, MatchesItsHeads) {
  manual_seed(1);
  MultiheadAttention layer({.embed = 6, .heads = 2, .batch_first = true});
  EXPECT_EQ(names_of(layer), (std::vector<std::string>{"in_proj_weight", "in_proj_bias",
                                                       "out_proj.weight", "out_proj.bias"}));
  EXPECT_EQ(mean(abs(layer.in_proj_bias)).item() + mean(abs(layer.out_proj.bias)).item(), 0);
  const Tensor x = randn({3, 5, 6}), memory = randn({3, 4, 6}), added = randn({5, 4});
  EXPECT_LT(largest_difference(layer(x), attention_of(layer, x, x, 2, {})), 1e-5);
  EXPECT_LT(largest_difference(layer.attend(x, memory, memory, {.mask = added}),
                               attention_of(layer, x, memory, 2, added)),
            1e-5);
  Tensor hidden = zeros({5, 5});
  for (int64_t i = 0; i < 25; ++i) {
    hidden.data<float>()[i] = i % 5 > i / 5 ? -1e30f : 0.0f;
  }
  EXPECT_LT(largest_difference(layer.attend(x, x, x, {.is_causal = true}),
                               attention_of(layer, x, x, 2, hidden)),
            1e-5);
}

TEST(MultiheadAttention, NamesTheInputOfWrongShape) {
  MultiheadAttention layer({.embed = 8, .heads = 2});
  const Tensor right = randn({3, 2, 8});
  const auto error_of_inputs = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    return error_of([&] { layer.attend(q, k, v); });
  };
  const std::string expected = ", expected [length, batch, size]";
  EXPECT_EQ(error_of_inputs(randn({3, 8}), right, right),
            "MultiheadAttention: got a query of shape [3, 8]" + expected);
  EXPECT_EQ(error_of_inputs(right, randn({3, 2, 8, 1}), right),
            "MultiheadAttention: got a key of shape [3, 2, 8, 1]" + expected);
  EXPECT_EQ(error_of_inputs(right, right, Tensor()),
            "MultiheadAttention: got a value that is undefined" + expected);
}

TEST(MultiheadAttention, LayoutsOtherSizesAndDropout) {
  manual_seed(2);
  MultiheadAttention layer({.embed = 8, .heads = 4}),
      first({.embed = 8, .heads = 4, .batch_first = true});
  first.load_state(layer.state());
  const Tensor x = randn({5, 2, 8});
  EXPECT_LT(largest_difference(layer(x), transpose(first(transpose(x, 0, 1)), 0, 1)), 1e-6);

  MultiheadAttention other({.embed = 8, .heads = 2, .bias = false, .key_size = 3, .value_size = 5});
  EXPECT_EQ(names_of(other), (std::vector<std::string>{"q_proj_weight", "k_proj_weight",
                                                       "v_proj_weight", "out_proj.weight"}));
  EXPECT_EQ(other.attend(x, randn({7, 2, 3}), randn({7, 2, 5})).sizes(), x.sizes());

  MultiheadAttention dropping({.embed = 8, .heads = 2, .dropout = 0.5});
  const Tensor hidden = lt(randn({5, 5}), full({}, -3));
  const auto run = [&] { return dropping.attend(x, x, x, {.mask = hidden, .is_causal = true}); };
  EXPECT_GT(largest_difference(run(), run()), 1e-3);
  dropping.eval();
  EXPECT_EQ(largest_difference(run(), run()), 0);
  EXPECT_THROW(MultiheadAttention({.embed = 8, .heads = 3}), Error);
  EXPECT_THROW(layer(randn({5, 8})), Error);
}

// PyTorch's two meanings: in the layer a bool mask is true where attention is not allowed, in the
// op where a key takes part. Both add a floating mask to the scores.
TEST(MultiheadAttention, ABoolMaskIsTrueWhereMasked) {
  manual_seed(8);
  MultiheadAttention layer({.embed = 6, .heads = 2, .batch_first = true});
  const Tensor x = randn({3, 5, 6}), dy = randn({3, 5, 6}), random = randn({3, 1, 5, 5});
  const Tensor later = from_values({0, 1, 1, 1, 1,  //
                                    0, 0, 1, 1, 1,  //
                                    0, 0, 0, 1, 1,  //
                                    0, 0, 0, 0, 1,  //
                                    0, 0, 0, 0, 0},
                                   {5, 5}, DType::boolean);
  const auto run = [&](const AttentionMask& mask) {
    Tensor a = x.detach().require_grad();
    const Tensor y = layer.attend(a, a, a, mask);
    sum(y * dy).backward();
    return std::pair(y.detach(), a.grad());
  };
  const auto causal = run({.is_causal = true});
  const Tensor added = masked_fill(zeros({5, 5}), later, -INFINITY);
  for (const AttentionMask& mask : {AttentionMask{.mask = later}, AttentionMask{.mask = added}}) {
    const auto masked = run(mask);
    EXPECT_LT(largest_difference(masked.first, causal.first), 1e-5);
    EXPECT_LT(largest_difference(masked.second, causal.second), 1e-5);
  }
  // One mask per sample; every position attends to itself.
  const Tensor itself = cast(from_values({1, 0, 0, 0, 0,  //
                                          0, 1, 0, 0, 0,  //
                                          0, 0, 1, 0, 0,  //
                                          0, 0, 0, 1, 0,  //
                                          0, 0, 0, 0, 1},
                                         {1, 1, 5, 5}),
                             DType::boolean);
  const Tensor hidden = logical_and(gt(random, full({}, 0.3)), logical_not(itself));
  const auto by_bool = run({.mask = hidden});
  const auto by_scores = run({.mask = masked_fill(zeros({3, 1, 5, 5}), hidden, -INFINITY)});
  EXPECT_LT(largest_difference(by_bool.first, by_scores.first), 1e-5);
  EXPECT_LT(largest_difference(by_bool.second, by_scores.second), 1e-5);
  // One mask per sample and head; one per sample in three dimensions is an error.
  const Tensor per_head = logical_and(gt(randn({3, 2, 5, 5}), full({}, 0.3)), logical_not(itself));
  const auto joined = run({.mask = reshape(per_head, {6, 5, 5})});
  const auto apart = run({.mask = per_head});
  EXPECT_EQ(largest_difference(joined.first, apart.first), 0);
  EXPECT_EQ(largest_difference(joined.second, apart.second), 0);
  const Tensor pair = slice(x, 0, 0, 2);  // as many samples as heads
  try {
    (void)layer.attend(pair, pair, pair, {.mask = zeros({2, 5, 5})});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "MultiheadAttention: got a mask of shape [2, 5, 5], expected [4, queries, keys], or "
        "[2, 1, queries, keys] for one per sample");
  }
  const Tensor q = randn({3, 2, 5, 4});
  EXPECT_LT(largest_difference(scaled_dot_product_attention(q, q, q, {.mask = logical_not(later)}),
                               scaled_dot_product_attention(q, q, q, {.is_causal = true})),
            1e-5);
}

// A very small dropout rate keeps almost all weights.
TEST(MultiheadAttention, DropoutKeepsTheRest) {
  manual_seed(3);
  MultiheadAttention layer({.embed = 4, .heads = 2, .dropout = 1e-7});
  const Tensor x = randn({6, 2, 4}), scores = randn({6, 6});
  for (int64_t i = 0; i < 6; ++i) {
    scores.data<float>()[i * 7] = 1;  // everyone sees itself
  }
  const AttentionMask kept{.mask = lt(scores, full({}, -0.5)), .is_causal = true};
  const Tensor trained = layer.attend(x, x, x, kept);
  layer.eval();
  EXPECT_LT(largest_difference(trained, layer.attend(x, x, x, kept)), 1e-5);
}

TEST(LSTM, LayersAndDirections) {
  manual_seed(4);
  LSTM layer({.input = 3, .hidden = 4, .layers = 2, .bidirectional = true});
  const std::vector<std::string> names = names_of(layer);
  ASSERT_EQ(names.size(), 16u);
  EXPECT_EQ(names[0], "weight_ih_l0");
  EXPECT_EQ(names[7], "bias_hh_l0_reverse");
  EXPECT_EQ(names[12], "weight_ih_l1_reverse");
  EXPECT_EQ(layer.weights[2].weight_ih.sizes(), (Dims{16, 8}));
  EXPECT_LE(layer.weights[0].weight_hh.at(5), 0.5);
  const Tensor x = randn({5, 2, 3});
  const RecurrentState start{randn({4, 2, 4}), randn({4, 2, 4})};
  const RecurrentResult got = layer.run(x, start);
  Tensor h = x;
  for (int64_t l = 0; l < 2; ++l) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < 2; ++d) {
      const int64_t i = 2 * l + d;
      const RecurrentOutput y = lstm(h, select(start.h, 0, i), select(start.c, 0, i),
                                     layer.weights[size_t(i)], {.reverse = d == 1});
      EXPECT_EQ(largest_difference(select(got.state.h, 0, i), y.h_n), 0);
      EXPECT_EQ(largest_difference(select(got.state.c, 0, i), y.c_n), 0);
      outputs.push_back(y.output);
    }
    h = cat(outputs, 2);
  }
  EXPECT_EQ(largest_difference(got.output, h), 0);
}

// Hidden states projected, both directions of two layers, forward and backward, step by step.
TEST(LSTM, Projection) {
  manual_seed(6);
  LSTM layer({.input = 3, .hidden = 5, .layers = 2, .bidirectional = true, .projection = 2});
  const std::vector<std::string> names = names_of(layer);
  ASSERT_EQ(names.size(), 20u);
  EXPECT_EQ(names[4], "weight_hr_l0");
  EXPECT_EQ(layer.weights[2].weight_ih.sizes(), (Dims{20, 4}));
  EXPECT_EQ(layer.weights[2].weight_hh.sizes(), (Dims{20, 2}));
  EXPECT_EQ(layer.weights[3].weight_hr.sizes(), (Dims{2, 5}));
  const Tensor x = randn({4, 2, 3}), upstream = randn({4, 2, 4}), last = randn({4, 2, 2});
  const RecurrentState start{randn({4, 2, 2}), randn({4, 2, 5})};

  const auto gradients = [&](const RecurrentResult& y) {
    (sum(y.output * upstream) + sum(y.state.h * last) + sum(y.state.c)).backward();
    std::vector<Tensor> all{y.output.detach(), y.state.h.detach(), y.state.c.detach()};
    for (const auto& [name, parameter] : layer.named_parameters()) {
      all.push_back(parameter.grad());
      parameter.zero_grad();
    }
    return all;
  };
  const auto composed = [&] {
    Tensor input = x;
    std::vector<Tensor> h_n, c_n;
    for (int64_t l = 0; l < 2; ++l) {
      std::vector<Tensor> sides;
      for (int64_t d = 0; d < 2; ++d) {
        const int64_t i = 2 * l + d;
        const RecurrentWeights& w = layer.weights[size_t(i)];
        Tensor h = select(start.h, 0, i), c = select(start.c, 0, i);
        std::vector<Tensor> steps(4);
        for (int64_t t = 0; t < 4; ++t) {
          const int64_t at = d == 0 ? t : 3 - t;
          const std::vector<Tensor> a = split(linear(select(input, 0, at), w.weight_ih, w.bias_ih) +
                                                  linear(h, w.weight_hh, w.bias_hh),
                                              5, 1);
          c = sigmoid(a[1]) * c + sigmoid(a[0]) * tanh(a[2]);
          h = linear(sigmoid(a[3]) * tanh(c), w.weight_hr, {});
          steps[size_t(at)] = h;
        }
        sides.push_back(stack(steps));
        h_n.push_back(h);
        c_n.push_back(c);
      }
      input = cat(sides, 2);
    }
    return RecurrentResult{input, {stack(h_n), stack(c_n)}};
  };
  const std::vector<Tensor> got = gradients(layer.run(x, start)), expected = gradients(composed());
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_LT(largest_difference(got[i], expected[i]), 2e-6) << i;
  }
  EXPECT_THROW(LSTM({.input = 3, .hidden = 4, .projection = 4}), Error);
  EXPECT_THROW(GRU({.input = 3, .hidden = 4, .projection = 2}), Error);
  RecurrentWeights gates{.weight_ih = randn({15, 3}), .weight_hh = randn({15, 5})};
  gates.weight_hr = randn({5, 5});
  EXPECT_THROW(gru(x, randn({2, 5}), gates), Error);
}

TEST(Recurrent, LayoutsStatesDropoutAndErrors) {
  manual_seed(5);
  GRU gru_layer({.input = 3, .hidden = 4}), first({.input = 3, .hidden = 4, .batch_first = true});
  first.load_state(gru_layer.state());
  const Tensor x = randn({5, 2, 3});
  const RecurrentResult y = gru_layer.run(x);
  EXPECT_LT(largest_difference(y.output, transpose(first(transpose(x, 0, 1)), 0, 1)), 1e-6);
  EXPECT_FALSE(y.state.c.defined());
  EXPECT_EQ(largest_difference(select(y.state.h, 0, 0), select(y.output, 0, 4)), 0);

  RNN dropping({.input = 3, .hidden = 4, .layers = 2, .dropout = 0.5});
  EXPECT_GT(largest_difference(dropping(x), dropping(x)), 1e-4);
  dropping.eval();
  EXPECT_EQ(largest_difference(dropping(x), dropping(x)), 0);

  RNN rectified({.input = 3, .hidden = 4}, Nonlinearity::relu);
  const RecurrentWeights& w = rectified.weights[0];
  Tensor h = zeros({2, 4});
  for (int64_t t = 0; t < 5; ++t) {
    h = relu(linear(select(x, 0, t), w.weight_ih, w.bias_ih) + linear(h, w.weight_hh, w.bias_hh));
  }
  EXPECT_LT(largest_difference(select(rectified.run(x).output, 0, 4), h), 1e-6);

  EXPECT_THROW(gru_layer(randn({5, 2, 4})), Error);
  EXPECT_THROW(gru_layer.run(x, {.h = randn({2, 2, 4})}), Error);
  for (Recurrent* layer : std::initializer_list<Recurrent*>{&gru_layer, &rectified}) {
    try {
      (void)layer->run(x, {.c = zeros({1, 2, 4})});
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what())
                      .ends_with(": got a start state c, expected only h; an LSTM alone has c"))
          << error.what();
    }
  }
  EXPECT_THROW(GRU({.input = 3, .hidden = 0}), Error);
  EXPECT_THROW(RNN({.input = 3, .hidden = 4}, Nonlinearity::selu), Error);
}

// Cells step by step are the layer over the sequence.
TEST(Cells, AreOneStepOfTheirLayers) {
  manual_seed(21);
  const Tensor x = randn({4, 2, 3});
  const auto without_suffix = [](const Module& layer) {
    NamedTensors state = layer.state();
    for (auto& [name, tensor] : state) {
      name = name.substr(0, name.size() - 3);  // _l0
    }
    return state;
  };
  LSTM lstm({.input = 3, .hidden = 5});
  LSTMCell lstm_cell({.input = 3, .hidden = 5});
  lstm_cell.load_state(without_suffix(lstm));
  GRU gru({.input = 3, .hidden = 5, .bias = false});
  GRUCell gru_cell({.input = 3, .hidden = 5, .bias = false});
  gru_cell.load_state(without_suffix(gru));
  RNN rnn({.input = 3, .hidden = 5}, Nonlinearity::relu);
  RNNCell rnn_cell({.input = 3, .hidden = 5}, Nonlinearity::relu);
  rnn_cell.load_state(without_suffix(rnn));
  RecurrentState state;
  Tensor h, r;
  for (int64_t step = 0; step < 4; ++step) {
    const Tensor now = select(x, 0, step);
    state = lstm_cell(now, state);
    h = step == 0 ? gru_cell(now) : gru_cell(now, h);
    r = rnn_cell(now, r);
  }
  const RecurrentResult whole = lstm.run(x);
  EXPECT_LT(largest_difference(state.h, select(whole.state.h, 0, 0)), 1e-6);
  EXPECT_LT(largest_difference(state.c, select(whole.state.c, 0, 0)), 1e-6);
  EXPECT_LT(largest_difference(h, select(gru.run(x).state.h, 0, 0)), 1e-6);
  EXPECT_LT(largest_difference(r, select(rnn.run(x).state.h, 0, 0)), 1e-6);
  EXPECT_THROW(gru_cell(randn({2, 4})), Error);
  EXPECT_THROW(RNNCell({.input = 3, .hidden = 5}, Nonlinearity::selu), Error);
  EXPECT_EQ(rnn_cell(randn({0, 3})).sizes(), (Dims{0, 5}));
}

}  // namespace
}  // namespace binade::nn::sequence_test
