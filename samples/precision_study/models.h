// The models of the study, small enough to train in seconds on a CPU.
#pragma once
#include <binade/binade.h>

namespace study {

using namespace binade;

// [N, C, H, W] -> [N, classes]: linear layers with relu between them.
class Perceptron : public nn::Module {
 public:
  Perceptron(int64_t in, const std::vector<int64_t>& hidden, int64_t classes);
  Tensor forward(const Tensor& x) override;

 private:
  std::vector<std::unique_ptr<nn::Linear>> layers_;
};

// [N, C, H, W] -> [N, classes]: two 3x3 convolutions with batch norm, relu and pooling, and a
// linear layer.
class ConvNet : public nn::Module {
 public:
  ConvNet(int64_t channels, int64_t edge, int64_t classes);
  Tensor forward(const Tensor& x) override;

 private:
  nn::Conv2d conv1_, conv2_;
  nn::BatchNorm2d bn1_, bn2_;
  nn::Linear fc_;
};

// i64 [N, T] -> [N T, symbols]: a transformer decoder of two layers with causal attention.
class CharGpt : public nn::Module {
 public:
  CharGpt(int64_t symbols, int64_t context);
  Tensor forward(const Tensor& x) override;

 private:
  nn::Embedding tokens_, positions_;
  nn::TransformerEncoderLayer first_, second_;
  nn::LayerNorm norm_;
  nn::Linear head_;
};

// i64 [N, T] -> [N T, symbols].
class CharLSTM : public nn::Module {
 public:
  explicit CharLSTM(int64_t symbols);
  Tensor forward(const Tensor& x) override;

 private:
  nn::Embedding embed_;
  nn::LSTM lstm_;
  nn::Linear head_;
};

}  // namespace study
