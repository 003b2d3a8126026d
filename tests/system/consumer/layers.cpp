// Transformer stacks, cells, key padding, grouped-query attention and small layers.
#include "expect.h"
using namespace binade;

// A padded key changes nothing: the result is that of the shorter sequence.
void key_padding() {
  nn::TransformerEncoder encoder(
      {.layer = {.embed = 8, .heads = 2, .feedforward = 16, .dropout = 0, .batch_first = true},
       .layers = 2,
       .norm = true});
  const Tensor x = randn({3, 5, 8});
  Tensor padding = zeros({3, 5}, DType::boolean);
  index_put_(padding, {Slice{}, Slice{3, 5}}, 1);
  const Tensor whole = encoder(x, {.key_padding = padding}), part = encoder(slice(x, 1, 0, 3));
  EXPECT(close(slice(whole, 1, 0, 3), part));
  EXPECT(encoder.layers.size() == 2 && encoder.norm);
  EXPECT(encoder.named_parameters().size() == 2 * 12 + 2);
  sum(square(whole)).backward();
  EXPECT(encoder.layers[1].linear2.weight.grad().defined());
  EXPECT(contains(error_of([&] {
                    encoder(x, {.key_padding = zeros({5, 3}, DType::boolean)});
                  }),
                  "[5, 3]"));
}

void decoder() {
  nn::TransformerDecoder decoder(
      {.layer = {.embed = 8, .heads = 2, .feedforward = 16, .dropout = 0}, .layers = 2});
  const Tensor target = randn({4, 2, 8}), memory = randn({6, 2, 8});
  const Tensor causal = decoder(target, memory, {.self = {.is_causal = true}});
  // The first target sees only itself.
  const Tensor first = decoder(slice(target, 0, 0, 1), memory);
  EXPECT(close(causal[0], first[0]));
}

// Two groups of keys for four heads: the same as every group repeated for its heads.
void grouped_queries() {
  const Tensor q = randn({2, 4, 3, 8}), k = randn({2, 2, 5, 8}), v = randn({2, 2, 5, 8});
  const Tensor grouped = scaled_dot_product_attention(q, k, v, {.enable_gqa = true});
  const Tensor plain =
      scaled_dot_product_attention(q, repeat_interleave(k, 2, 1), repeat_interleave(v, 2, 1));
  EXPECT(close(grouped, plain));
  nn::MultiheadAttention attention({.embed = 8, .heads = 4, .kv_heads = 2});
  EXPECT(attention.k_proj_weight.sizes() == Dims({4, 8}));
  const Tensor x = randn({3, 2, 8});
  EXPECT(attention(x, x, x).sizes() == x.sizes());
  EXPECT(contains(error_of([] { nn::MultiheadAttention({.embed = 8, .heads = 4, .kv_heads = 3}); }),
                  "kv_heads"));
}

// A cell step by step gives what the layer gives.
void cells() {
  nn::LSTM lstm({.input = 3, .hidden = 4});
  nn::LSTMCell cell({.input = 3, .hidden = 4});
  NamedTensors state;
  for (const auto& [name, value] : lstm.state()) {
    state.emplace_back(name.substr(0, name.size() - 3), value);  // without _l0
  }
  cell.load_state(state);
  const Tensor x = randn({5, 2, 3});
  const nn::RecurrentResult whole = lstm.run(x);
  nn::RecurrentState step;
  for (const Tensor& input : unbind(x)) {
    step = cell(input, step);
  }
  EXPECT(close(step.h, whole.state.h[0]) && close(step.c, whole.state.c[0]));
  nn::GRUCell gru({.input = 3, .hidden = 4});
  EXPECT(gru(x[0], zeros({2, 4})).sizes() == Dims({2, 4}));
}

void small_layers() {
  const Tensor x = randn({2, 6, 3, 3});
  EXPECT(close(sum(nn::Softmax({.dim = 1})(x), {1}), ones({2, 3, 3})));
  EXPECT(close(nn::GLU({.dim = 1})(x), slice(x, 1, 0, 3) * sigmoid(slice(x, 1, 3, 6))));
  nn::PReLU prelu({.channels = 6, .init = 0.5});
  EXPECT(close(prelu(x), where(x > 0, x, x * 0.5)));
  nn::Dropout2d dropout({.p = 0.5});
  const Tensor kept = dropout(ones({4, 50, 2, 2}));
  const Tensor channels = sum(kept, {2, 3});
  EXPECT(all(logical_or(channels == 0, channels == 8)).item() == 1);
  EXPECT(any(channels == 0).item() == 1 && any(channels == 8).item() == 1);
  dropout.eval();
  EXPECT(equal(dropout(x), x));
}

int main() {
  manual_seed(5);
  key_padding();
  decoder();
  grouped_queries();
  cells();
  small_layers();
}
