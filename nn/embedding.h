// Tables of vectors, looked up by index.
#pragma once
#include <binade/core/ops/index.h>
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

struct EmbeddingBagOptions {
  int64_t count;  // of vectors
  int64_t width;  // of each
  BagMode mode = BagMode::mean;
  std::optional<int64_t> padding_idx = std::nullopt;  // takes no part, starts at zero
  bool include_last_offset = false;
};

// Sums, means or maxima of vectors: binade::embedding_bag. Initial values are standard normal.
class EmbeddingBag : public Module {
 public:
  using Options = EmbeddingBagOptions;
  explicit EmbeddingBag(const EmbeddingBagOptions& options);
  EmbeddingBag(Module& parent, std::string_view name, const EmbeddingBagOptions& options)
      : EmbeddingBag(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& index) override { return reduce(index, {}, {}); }  // [bags, n]
  // index [n] with offsets, or [bags, n] without; per_sample_weights of index's sizes for a sum.
  using Module::operator();
  Tensor operator()(const Tensor& index, const Tensor& offsets,
                    const Tensor& per_sample_weights = {}) {
    return scoped([&] { return reduce(index, offsets, per_sample_weights); });
  }

  Tensor weight;  // [count, width]

 private:
  Tensor reduce(const Tensor& index, const Tensor& offsets, const Tensor& per_sample_weights) const;
  binade::EmbeddingBagOptions options_;
};

}  // namespace binade::nn
