// A table of vectors, looked up by index.
#pragma once
#include <binade/nn/module.h>

namespace binade::nn {

struct EmbeddingOptions {
  int64_t count;  // of vectors
  int64_t width;  // of each
  // This vector starts at zero and gets no gradient. A negative index counts from the end.
  std::optional<int64_t> padding_idx = std::nullopt;
};

// index i64 [...] -> [..., width]. Initial values are standard normal.
class Embedding : public Module {
 public:
  using Options = EmbeddingOptions;
  explicit Embedding(const EmbeddingOptions& options);
  Embedding(Module& parent, std::string_view name, const EmbeddingOptions& options)
      : Embedding(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& index) override;

  Tensor weight;  // [count, width]

 private:
  std::optional<int64_t> padding_idx_;
};

}  // namespace binade::nn
