// RNN, GRU and LSTM on padded batches: every sequence gives what it gives alone, whatever is behind
// its end.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/rnn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/error_of.h"

namespace binade::nn::padded_sequence_test {
namespace {

constexpr int64_t kSteps = 6, kInput = 3;

// The sum of all outputs and last states times these upstream gradients.
Tensor scored(const RecurrentResult& y, const RecurrentResult& upstream) {
  Tensor score = sum(y.output * upstream.output) + sum(y.state.h * upstream.state.h);
  return y.state.c.defined() ? score + sum(y.state.c * upstream.state.c) : score;
}

double largest_gap(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return a.numel() == 0 ? 0 : max(abs(a - b)).item();
}

// The layer runs on the padded batch and on each sequence alone; values and gradients agree.
template <class Layer>
void expect_as_alone(Layer& layer, const std::vector<int64_t>& lengths) {
  const auto batch = static_cast<int64_t>(lengths.size());
  Tensor x = randn({kSteps, batch, kInput});
  RecurrentState start;
  {
    const NoGradGuard guard;
    const RecurrentResult sizes = layer.run(x);
    start.h = randn(sizes.state.h.sizes());
    start.c = sizes.state.c.defined() ? randn(sizes.state.c.sizes()) : Tensor();
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t t = lengths[static_cast<size_t>(b)]; t < kSteps; ++t) {
        for (int64_t i = 0; i < kInput; ++i) {
          x.data<float>()[(t * batch + b) * kInput + i] = std::numeric_limits<float>::quiet_NaN();
        }
      }
    }
  }
  x.require_grad();
  start.h.require_grad();
  const RecurrentResult y = layer.run(x, start, Tensor::from(lengths));
  RecurrentResult upstream{randn(y.output.sizes()), {randn(y.state.h.sizes()), {}}};
  if (y.state.c.defined()) {
    upstream.state.c = randn(y.state.c.sizes());
  }
  scored(y, upstream).backward();
  std::vector<Tensor> padded;
  for (const auto& [name, parameter] : layer.named_parameters()) {
    padded.push_back(parameter.grad());
    parameter.zero_grad();
  }

  const Tensor dx = x.grad(), dh = start.h.grad();
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    const auto own = [&](const Tensor& t) {
      return t.defined() ? narrow(t, 1, b, 1).detach() : Tensor();
    };
    Tensor alone_x = clone(narrow(own(x), 0, 0, length)), alone_h = clone(own(start.h));
    alone_x.require_grad();
    alone_h.require_grad();
    const RecurrentResult alone = layer.run(alone_x, {alone_h, own(start.c)});
    EXPECT_LT(largest_gap(alone.output, narrow(own(y.output), 0, 0, length)), 2e-6) << b;
    EXPECT_LT(largest_gap(alone.state.h, own(y.state.h)), 2e-6) << b;
    if (alone.state.c.defined()) {
      EXPECT_LT(largest_gap(alone.state.c, own(y.state.c)), 2e-6) << b;
    }
    EXPECT_EQ(largest_gap(narrow(own(y.output), 0, length, kSteps - length) * 1e9,
                          zeros({kSteps - length, 1, y.output.size(2)})),
              0)
        << b;
    scored(alone, {narrow(own(upstream.output), 0, 0, length),
                   {own(upstream.state.h), own(upstream.state.c)}})
        .backward();
    EXPECT_LT(largest_gap(alone_x.grad(), narrow(own(dx), 0, 0, length)), 5e-6) << b;
    EXPECT_LT(largest_gap(alone_h.grad(), own(dh)), 5e-6) << b;
    EXPECT_EQ(sum(abs(narrow(own(dx), 0, length, kSteps - length))).item(), 0) << b;
  }
  size_t i = 0;
  for (const auto& [name, parameter] : layer.named_parameters()) {  // the sums over the sequences
    EXPECT_LT(largest_gap(parameter.grad(), padded[i++]), 2e-5) << name;
    parameter.zero_grad();
  }
}

TEST(PaddedSequence, EachSequenceIsAsAlone) {
  manual_seed(3);
  const std::vector<int64_t> few{3}, some{2, 6, 1, 5, 5}, sorted{6, 4, 4, 1};
  std::vector<int64_t> many;  // several tasks in a step; no sequence has all steps
  for (int64_t b = 0; b < 101; ++b) {
    many.push_back(1 + b * 7 % (kSteps - 1));
  }
  for (const std::vector<int64_t>& lengths : {few, some, sorted, many}) {
    RNN tanh_layer({.input = kInput, .hidden = 5});
    RNN relu_layer({.input = kInput, .hidden = 19, .bidirectional = true}, Nonlinearity::relu);
    GRU gru_layer({.input = kInput, .hidden = 17, .layers = 2, .bidirectional = true});
    LSTM lstm_layer({.input = kInput, .hidden = 33, .layers = 2, .bidirectional = true});
    LSTM projected({.input = kInput, .hidden = 7, .bidirectional = true, .projection = 4});
    expect_as_alone(tanh_layer, lengths);
    expect_as_alone(relu_layer, lengths);
    expect_as_alone(gru_layer, lengths);
    expect_as_alone(lstm_layer, lengths);
    expect_as_alone(projected, lengths);
  }
}

// Only the last states have gradients from outside, as of a classifier of sequences.
TEST(PaddedSequence, GradientsOfLastStatesAlone) {
  manual_seed(4);
  GRU layer({.input = kInput, .hidden = 9});
  const Tensor upstream = randn({1, 3, 9});
  Tensor x = randn({kSteps, 3, kInput});
  x.require_grad();
  sum(layer.run(x, {}, Tensor::from<int64_t>({2, 6, 4})).state.h * upstream).backward();
  for (const auto& [b, length] : {std::pair{0, 2}, {1, 6}, {2, 4}}) {
    Tensor alone = clone(narrow(narrow(x.detach(), 1, b, 1), 0, 0, length));
    alone.require_grad();
    sum(layer.run(alone).state.h * narrow(upstream, 1, b, 1)).backward();
    EXPECT_LT(largest_gap(alone.grad(), narrow(narrow(x.grad(), 1, b, 1), 0, 0, length)), 2e-6);
  }
}

TEST(PaddedSequence, WrongLengthsAreAnError) {
  LSTM layer({.input = kInput, .hidden = 4, .batch_first = true});
  const Tensor x = randn({2, kSteps, kInput});
  EXPECT_EQ(error_of([&] {
              layer.run(x, {}, Tensor::from<int64_t>({2, 7}));
            }),
            "lstm: got a length of 7, expected 1 to 6, the steps of x");
  EXPECT_EQ(error_of([&] {
              layer.run(x, {}, Tensor::from<int64_t>({2, 5, 6}));
            }),
            "lstm: got lengths i64 [3] on cpu, expected i64 [2] on cpu, one per sequence");
}

}  // namespace
}  // namespace binade::nn::padded_sequence_test
