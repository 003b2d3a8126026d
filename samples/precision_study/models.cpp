#include "models.h"

namespace study {
namespace {

nn::TransformerEncoderLayerOptions gpt_layer(int64_t width) {
  return {.embed = width,
          .heads = 4,
          .feedforward = 4 * width,
          .dropout = 0,
          .activation = nn::FeedforwardActivation::gelu,
          .batch_first = true,
          .norm_first = true};
}

constexpr int64_t kGptWidth = 32, kLstmEmbed = 24, kLstmHidden = 64;

Tensor halve(const Tensor& x) { return max_pool2d(x, {.kernel = {2, 2}, .stride = {2, 2}}); }

}  // namespace

Perceptron::Perceptron(int64_t in, const std::vector<int64_t>& hidden, int64_t classes) {
  for (size_t i = 0; i <= hidden.size(); ++i) {
    const int64_t out = i < hidden.size() ? hidden[i] : classes;
    layers_.push_back(std::make_unique<nn::Linear>(nn::LinearOptions{.in = in, .out = out}));
    register_module("fc" + std::to_string(i + 1), *layers_.back());
    in = out;
  }
}

Tensor Perceptron::forward(const Tensor& x) {
  Tensor y = flatten(x, 1);
  for (size_t i = 0; i < layers_.size(); ++i) {
    y = (*layers_[i])(i ? relu(y) : y);
  }
  return y;
}

ConvNet::ConvNet(int64_t channels, int64_t edge, int64_t classes)
    : conv1_({.in = channels, .out = 8, .kernel = 3, .padding = 1, .bias = false}),
      conv2_({.in = 8, .out = 16, .kernel = 3, .padding = 1, .bias = false}),
      bn1_({.channels = 8}),
      bn2_({.channels = 16}),
      fc_({.in = 16 * (edge / 4) * (edge / 4), .out = classes}) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  register_module("conv2", conv2_);
  register_module("bn2", bn2_);
  register_module("fc", fc_);
}

Tensor ConvNet::forward(const Tensor& x) {
  Tensor y = halve(relu(bn1_(conv1_(x))));
  y = halve(relu(bn2_(conv2_(y))));
  return fc_(flatten(y, 1));
}

CharGpt::CharGpt(int64_t symbols, int64_t context)
    : tokens_({.count = symbols, .width = kGptWidth}),
      positions_({.count = context, .width = kGptWidth}),
      first_(gpt_layer(kGptWidth)),
      second_(gpt_layer(kGptWidth)),
      norm_({.normalized_shape = {kGptWidth}}),
      head_({.in = kGptWidth, .out = symbols, .bias = false}) {
  nn::init::normal(tokens_.weight, 0, 0.1);
  nn::init::normal(positions_.weight, 0, 0.1);
  register_module("tokens", tokens_);
  register_module("positions", positions_);
  register_module("first", first_);
  register_module("second", second_);
  register_module("norm", norm_);
  register_module("head", head_);
}

Tensor CharGpt::forward(const Tensor& x) {
  Tensor h = tokens_(x) + slice(positions_.weight, 0, 0, x.size(1));
  h = first_.encode(h, {.is_causal = true});
  h = second_.encode(h, {.is_causal = true});
  return flatten(head_(norm_(h)), 0, 1);
}

CharLSTM::CharLSTM(int64_t symbols)
    : embed_({.count = symbols, .width = kLstmEmbed}),
      lstm_({.input = kLstmEmbed, .hidden = kLstmHidden, .batch_first = true}),
      head_({.in = kLstmHidden, .out = symbols}) {
  register_module("embed", embed_);
  register_module("lstm", lstm_);
  register_module("head", head_);
}

Tensor CharLSTM::forward(const Tensor& x) {
  return flatten(head_(lstm_.run(embed_(x)).output), 0, 1);
}

}  // namespace study
