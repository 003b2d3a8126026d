// Parity names of modules (generate_modules.py): their parameters are inputs of the case.
#include <binade/core/ops/attention.h>
#include <binade/nn/activation.h>
#include <binade/nn/rnn.h>
#include <binade/nn/transformer.h>

#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

// Gives a module the inputs of a case that have its parameters' names.
class Fill {
 public:
  explicit Fill(const Call& call) : call_(call) {}

  void set(Tensor& tensor, const std::string& name) const {
    if (tensor.defined()) {
      tensor = call_.in(name);
    }
  }
  void set(nn::Linear& layer, const std::string& path) const { weights(layer, path); }
  void set(nn::LayerNorm& layer, const std::string& path) const { weights(layer, path); }
  void set(nn::MultiheadAttention& layer, const std::string& path) const {
    set(layer.in_proj_weight, path + "in_proj_weight");
    set(layer.in_proj_bias, path + "in_proj_bias");
    set(layer.out_proj, path + "out_proj");
  }
  void set(nn::TransformerEncoderLayer& layer, const std::string& path) const { ends(layer, path); }
  void set(nn::TransformerDecoderLayer& layer, const std::string& path) const {
    ends(layer, path);
    set(layer.multihead_attn, path + ".multihead_attn.");
    set(layer.norm3, path + ".norm3");
  }
  void set(RecurrentWeights& weights) const {
    set(weights.weight_ih, "weight_ih");
    set(weights.weight_hh, "weight_hh");
    set(weights.bias_ih, "bias_ih");
    set(weights.bias_hh, "bias_hh");
  }
  template <class Stack>
  void stack(Stack& stack) const {
    for (size_t i = 0; i < stack.layers.size(); ++i) {
      set(stack.layers[i], "layers." + std::to_string(i));
    }
    if (stack.norm) {
      set(*stack.norm, "norm");
    }
  }

 private:
  template <class Layer>
  void weights(Layer& layer, const std::string& path) const {
    set(layer.weight, path + ".weight");
    set(layer.bias, path + ".bias");
  }
  template <class Layer>
  void ends(Layer& layer, const std::string& path) const {
    set(layer.self_attn, path + ".self_attn.");
    set(layer.linear1, path + ".linear1");
    set(layer.linear2, path + ".linear2");
    set(layer.norm1, path + ".norm1");
    set(layer.norm2, path + ".norm2");
  }

  const Call& call_;
};

nn::TransformerStackOptions stack_of(const Call& call) {
  return {
      .layer = {.embed = call.in("x").size(2),
                .heads = call.attr("heads"),
                .feedforward = call.attr("feedforward"),
                .dropout = 0,
                .activation = call.attr("activation") == "relu" ? nn::FeedforwardActivation::relu
                                                                : nn::FeedforwardActivation::gelu,
                .batch_first = true,
                .norm_first = call.attr("norm_first")},
      .layers = call.attr("layers"),
      .norm = call.inputs.contains("norm.weight")};
}

Outputs run_mha(const Call& call) {
  nn::MultiheadAttention layer({.embed = call.in("query").size(2),
                                .heads = call.attr("heads"),
                                .batch_first = call.attr("batch_first")});
  Fill(call).set(layer, "");
  return {
      {"out", layer(call.in("query"), call.in("key"), call.in("value"),
                    {.mask = call.optional("mask"), .key_padding = call.optional("key_padding")})}};
}

Outputs run_encoder(const Call& call) {
  nn::TransformerEncoder encoder(stack_of(call));
  Fill(call).stack(encoder);
  return {{"out", encoder(call.in("x"),
                          {.mask = call.optional("mask"), .key_padding = call.in("key_padding")})}};
}

Outputs run_decoder(const Call& call) {
  nn::TransformerDecoder decoder(stack_of(call));
  Fill(call).stack(decoder);
  return {{"out", decoder(call.in("x"), call.in("memory"),
                          {.self = {.mask = call.optional("mask")},
                           .memory = {.key_padding = call.in("key_padding")}})}};
}

nn::RNNCellOptions cell_of(const Call& call) {
  return {.input = call.in("x").size(1), .hidden = call.in("h0").size(1)};
}

Outputs run_rnn_cell(const Call& call) {
  nn::RNNCell cell(cell_of(call), call.attr("nonlinearity") == "relu" ? nn::Nonlinearity::relu
                                                                      : nn::Nonlinearity::tanh);
  Fill(call).set(cell.weights);
  return {{"out", cell(call.in("x"), call.in("h0"))}};
}

Outputs run_gru_cell(const Call& call) {
  nn::GRUCell cell(cell_of(call));
  Fill(call).set(cell.weights);
  return {{"out", cell(call.in("x"), call.in("h0"))}};
}

Outputs run_lstm_cell(const Call& call) {
  nn::LSTMCell cell(cell_of(call));
  Fill(call).set(cell.weights);
  const nn::RecurrentState state = cell(call.in("x"), {.h = call.in("h0"), .c = call.in("c0")});
  return {{"h", state.h}, {"c", state.c}};
}

Outputs run_prelu(const Call& call) {
  nn::PReLU layer({.channels = call.in("weight").size(0)});
  Fill(call).set(layer.weight, "weight");
  return {{"out", layer(call.in("x"))}};
}

Outputs run_grouped_attention(const Call& call) {
  return {{"out", scaled_dot_product_attention(call.in("q"), call.in("k"), call.in("v"),
                                               {.mask = call.optional("mask"),
                                                .is_causal = call.attr("is_causal"),
                                                .enable_gqa = true})}};
}

}  // namespace

const std::map<std::string, Handler>& module_ops() {
  static const std::map<std::string, Handler> ops = {
      {"module_mha", run_mha},
      {"module_encoder", run_encoder},
      {"module_decoder", run_decoder},
      {"module_rnn_cell", run_rnn_cell},
      {"module_gru_cell", run_gru_cell},
      {"module_lstm_cell", run_lstm_cell},
      {"module_prelu", run_prelu},
      {"module_glu",
       [](const Call& call) {
         return Outputs{{"out", nn::GLU({.dim = call.attr("dim")})(call.in("x"))}};
       }},
      {"sdpa_gqa", run_grouped_attention},
  };
  return ops;
}

}  // namespace binade::parity
