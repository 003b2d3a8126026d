// Parity names of attention and recurrent layers.
#include <binade/core/ops/attention.h>
#include <binade/core/ops/rnn.h>

#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

Outputs run_attention(const Call& call) {
  AttentionOptions options{.mask = call.optional("mask"), .is_causal = call.attr("is_causal")};
  if (!call.attr("scale").is_null()) {
    options.scale = number(call.attr("scale"));
  }
  return {{"out", scaled_dot_product_attention(call.in("q"), call.in("k"), call.in("v"), options)}};
}

Outputs outputs_of(const RecurrentOutput& y) {
  Outputs outputs{{"output", y.output}, {"h_n", y.h_n}};
  if (y.c_n.defined()) {
    outputs["c_n"] = y.c_n;
  }
  return outputs;
}

RecurrentWeights weights_of(const Call& call) {
  return {call.in("weight_ih"), call.in("weight_hh"), call.optional("bias_ih"),
          call.optional("bias_hh"), call.optional("weight_hr")};
}
RecurrentOptions options_of(const Call& call) {
  return {.batch_first = call.attr("batch_first"), .reverse = call.c.attrs.value("reverse", false)};
}

}  // namespace

const std::map<std::string, Handler>& sequence_ops() {
  static const std::map<std::string, Handler> ops = {
      {"sdpa", run_attention},
      {"rnn_tanh",
       [](const Call& call) {
         return outputs_of(
             rnn_tanh(call.in("x"), call.in("h0"), weights_of(call), options_of(call)));
       }},
      {"rnn_relu",
       [](const Call& call) {
         return outputs_of(
             rnn_relu(call.in("x"), call.in("h0"), weights_of(call), options_of(call)));
       }},
      {"gru",
       [](const Call& call) {
         return outputs_of(gru(call.in("x"), call.in("h0"), weights_of(call), options_of(call)));
       }},
      {"lstm",
       [](const Call& call) {
         return outputs_of(
             lstm(call.in("x"), call.in("h0"), call.in("c0"), weights_of(call), options_of(call)));
       }},
  };
  return ops;
}

}  // namespace binade::parity
