// Recurrent language models.
#include <bench/peers/text_models.h>
#include <binade/core/ops.h>

namespace binade::peers {

RecurrentLM::RecurrentLM(const RecurrentLMOptions& options)
    : tokens({.count = options.vocabulary, .width = options.embed}),
      head({.in = options.hidden, .out = options.vocabulary}) {
  const nn::RNNOptions layers{.input = options.embed,
                              .hidden = options.hidden,
                              .layers = options.layers,
                              .batch_first = true};
  if (options.kind == RecurrentKind::lstm) {
    rnn = std::make_unique<nn::LSTM>(layers);
  } else {
    rnn = std::make_unique<nn::GRU>(layers);
  }
  register_module("tokens", tokens);
  register_module("rnn", *rnn);
  register_module("head", head);
}

Tensor RecurrentLM::forward(const Tensor& index) {
  return reshape(head((*rnn)(tokens(index))), {-1, head.weight.size(0)});
}

}  // namespace binade::peers
