// model_gpt and model_lstm, as the cases describe them.
#include <binade/core/ops.h>
#include <binade/core/ops/attention.h>
#include <binade/core/ops/index.h>
#include <binade/core/ops/rnn.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/embedding.h>
#include <binade/nn/linear.h>
#include <binade/nn/norm.h>

#include <tests/parity/sequence_models.h>

namespace binade::parity {
namespace {

class GPTBlock : public nn::Module {
 public:
  GPTBlock(int64_t dim, int64_t heads, double eps)
      : heads_(heads),
        ln1_({.normalized_shape = {dim}, .eps = eps}),
        ln2_({.normalized_shape = {dim}, .eps = eps}),
        qkv_({.in = dim, .out = 3 * dim}),
        proj_({.in = dim, .out = dim}),
        fc_({.in = dim, .out = 4 * dim}),
        out_({.in = 4 * dim, .out = dim}) {
    register_module("ln1", ln1_);
    register_module("qkv", qkv_);
    register_module("proj", proj_);
    register_module("ln2", ln2_);
    register_module("fc", fc_);
    register_module("out", out_);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor h = x + proj_(attention(qkv_(ln1_(x))));
    return h + out_(gelu_tanh(fc_(ln2_(h))));
  }

 private:
  Tensor attention(const Tensor& qkv) const {
    const int64_t batch = qkv.size(0), length = qkv.size(1), dim = qkv.size(2) / 3;
    std::vector<Tensor> parts = split(qkv, dim, -1);
    for (Tensor& part : parts) {
      part = transpose(reshape(part, {batch, length, heads_, dim / heads_}), 1, 2);
    }
    const Tensor y =
        scaled_dot_product_attention(parts[0], parts[1], parts[2], {.is_causal = true});
    return reshape(transpose(y, 1, 2), {batch, length, dim});
  }

  int64_t heads_;
  nn::LayerNorm ln1_, ln2_;
  nn::Linear qkv_, proj_, fc_, out_;
};

class GPT : public nn::Module {
 public:
  GPT(const Dims& wte, const Dims& wpe, const Json& attrs)
      : wte_({.count = wte[0], .width = wte[1]}),
        wpe_({.count = wpe[0], .width = wpe[1]}),
        ln_f_({.normalized_shape = {wte[1]}, .eps = attrs.at("ln_eps")}) {
    register_module("wte", wte_);
    register_module("wpe", wpe_);
    for (int64_t i = 0; i < attrs.at("layers"); ++i) {
      blocks_.push_back(std::make_unique<GPTBlock>(wte[1], attrs.at("heads"), attrs.at("ln_eps")));
      register_module("h" + std::to_string(i), *blocks_.back());
    }
    register_module("ln_f", ln_f_);
  }
  Tensor forward(const Tensor& x) override {
    Tensor h = wte_(x) + slice(wpe_.weight, 0, 0, x.size(1));
    for (const auto& block : blocks_) {
      h = (*block)(h);
    }
    return linear(ln_f_(h), wte_.weight);
  }

 private:
  nn::Embedding wte_, wpe_;
  nn::LayerNorm ln_f_;
  std::vector<std::unique_ptr<GPTBlock>> blocks_;
};

// One layer whose parameters have no suffix.
class PlainLSTM : public nn::Module {
 public:
  PlainLSTM(int64_t input, int64_t hidden)
      : weights_{empty({4 * hidden, input}), empty({4 * hidden, hidden}), empty({4 * hidden}),
                 empty({4 * hidden})} {
    register_parameter("weight_ih", weights_.weight_ih);
    register_parameter("weight_hh", weights_.weight_hh);
    register_parameter("bias_ih", weights_.bias_ih);
    register_parameter("bias_hh", weights_.bias_hh);
  }
  // The last state.
  Tensor forward(const Tensor& x) override {
    const Tensor zero = zeros({x.size(0), weights_.weight_hh.size(1)}, x.dtype(), x.device());
    return lstm(x, zero, zero, weights_, {.batch_first = true}).h_n;
  }

 private:
  RecurrentWeights weights_;
};

class LSTMClassifier : public nn::Module {
 public:
  LSTMClassifier(const Dims& embed, const Dims& fc, const Json& attrs)
      : embed_({.count = embed[0],
                .width = embed[1],
                .padding_idx = attrs.at("padding_idx").get<int64_t>()}),
        lstm_(embed[1], attrs.at("hidden")),
        fc_({.in = fc[1], .out = fc[0]}) {
    register_module("embed", embed_);
    register_module("lstm", lstm_);
    register_module("fc", fc_);
  }
  Tensor forward(const Tensor& x) override { return fc_(lstm_(embed_(x))); }

 private:
  nn::Embedding embed_;
  PlainLSTM lstm_;
  nn::Linear fc_;
};

}  // namespace

std::unique_ptr<nn::Module> make_sequence_model(const CaseFile& file, const Case& c) {
  const auto sizes = [&](const char* name) { return file.values(c.inputs.at(name)).sizes; };
  if (c.op == "model_gpt") {
    return std::make_unique<GPT>(sizes("wte.weight"), sizes("wpe.weight"), c.attrs);
  }
  if (c.op == "model_lstm") {
    return std::make_unique<LSTMClassifier>(sizes("embed.weight"), sizes("fc.weight"), c.attrs);
  }
  throw NotCovered{c.op};
}

}  // namespace binade::parity
