// Recurrent language models. Their parameters have the same names as in torch_models.py.
#pragma once
#include <binade/nn/embedding.h>
#include <binade/nn/linear.h>
#include <binade/nn/rnn.h>

namespace binade::peers {

enum class RecurrentKind : uint8_t { lstm, gru };

struct RecurrentLMOptions {
  RecurrentKind kind = RecurrentKind::lstm;
  int64_t vocabulary = 5000;
  int64_t embed = 256;
  int64_t hidden = 256;
  int64_t layers = 2;
};

// An embedding, recurrent layers and an untied head, without dropout.
// index i64 [N, steps] -> [N steps, vocabulary].
class RecurrentLM : public nn::Module {
 public:
  explicit RecurrentLM(const RecurrentLMOptions& options = {});
  Tensor forward(const Tensor& index) override;

  nn::Embedding tokens;
  std::unique_ptr<nn::Recurrent> rnn;
  nn::Linear head;
};

}  // namespace binade::peers
