#include <bench/peers/models.h>
#include <binade/core/ops.h>
#include <binade/nn/activation.h>
#include <binade/nn/pool.h>

namespace binade::peers {

std::unique_ptr<nn::Module> make_mnist_cnn() {
  auto model = std::make_unique<nn::Sequential>();
  model->add<nn::Conv2d>({.in = 1, .out = 32, .kernel = 3});
  model->add<nn::ReLU>();
  model->add<nn::Conv2d>({.in = 32, .out = 64, .kernel = 3});
  model->add<nn::ReLU>();
  model->add<nn::MaxPool2d>({.kernel = 2});
  model->add<nn::Flatten>();
  model->add<nn::Linear>({.in = 9216, .out = 128});
  model->add<nn::ReLU>();
  model->add<nn::Linear>({.in = 128, .out = 10});
  return model;
}

CharGPT::CharGPT(const CharGPTOptions& options)
    : tokens({.count = options.vocabulary, .width = options.embed}),
      positions({.count = options.context, .width = options.embed}),
      norm({.normalized_shape = {options.embed}}),
      head({.in = options.embed, .out = options.vocabulary, .bias = false}) {
  register_module("tokens", tokens);
  register_module("positions", positions);
  for (int64_t i = 0; i < options.layers; ++i) {
    layers_.push_back(std::make_unique<nn::TransformerEncoderLayer>(
        nn::TransformerEncoderLayerOptions{.embed = options.embed,
                                           .heads = options.heads,
                                           .feedforward = 4 * options.embed,
                                           .dropout = 0,
                                           .activation = nn::FeedforwardActivation::gelu,
                                           .batch_first = true,
                                           .norm_first = true}));
    register_module("layer" + std::to_string(i), *layers_.back());
  }
  register_module("norm", norm);
  register_module("head", head);
}

Tensor CharGPT::forward(const Tensor& index) {
  Tensor x = tokens(index) + positions.weight;
  for (const auto& layer : layers_) {
    x = layer->encode(x, {.is_causal = true});
  }
  return reshape(head(norm(x)), {-1, head.weight.size(0)});
}

}  // namespace binade::peers
