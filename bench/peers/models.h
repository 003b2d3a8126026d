// Models of the comparison that nn does not have. Their parameters have the same names as in
// torch_models.py and its neighbours.
#pragma once
#include <binade/nn/embedding.h>
#include <binade/nn/sequential.h>
#include <binade/nn/transformer.h>

namespace binade::peers {

// PyTorch's MNIST example without dropout: two 3x3 convolutions without padding, one 2x2 pooling,
// two fully connected layers; 1.2 million parameters. x [N, 1, 28, 28] -> [N, 10].
std::unique_ptr<nn::Module> make_mnist_cnn();

struct CharGPTOptions {
  int64_t layers = 4;
  int64_t embed = 128;
  int64_t heads = 4;
  int64_t context = 128;
  int64_t vocabulary = 65;
};

// A GPT on characters without dropout: pre-norm, exact gelu, untied head.
// index i64 [N, context] -> [N context, vocabulary].
class CharGPT : public nn::Module {
 public:
  using Options = CharGPTOptions;
  explicit CharGPT(const CharGPTOptions& options = {});
  Tensor forward(const Tensor& index) override;

  nn::Embedding tokens, positions;
  nn::LayerNorm norm;
  nn::Linear head;

 private:
  std::vector<std::unique_ptr<nn::TransformerEncoderLayer>> layers_;
};

}  // namespace binade::peers
