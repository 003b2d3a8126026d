#include <binade/core/ops.h>
#include <binade/core/ops/index.h>
#include <binade/nn/embedding.h>
#include <binade/nn/init.h>
#include <binade/nn/options_internal.h>

namespace binade::nn {

namespace {

// The table of a layer; the vector padding_idx is zero.
Tensor make_table(const char* name, int64_t count, int64_t width,
                  std::optional<int64_t> padding_idx) {
  check_sizes(name, {{"count", count}, {"width", width}});
  check(!padding_idx || (*padding_idx >= -count && *padding_idx < count), name,
        ": got padding_idx = ", padding_idx.value_or(0), ", expected ", -count, " to ", count - 1);
  Tensor weight = empty({count, width});
  init::normal(weight, 0, 1);
  if (padding_idx) {
    select(weight, 0, *padding_idx).fill_(0);
  }
  return weight;
}

}  // namespace

Embedding::Embedding(const EmbeddingOptions& options)
    : weight(make_table("Embedding", options.count, options.width, options.padding_idx)),
      padding_idx_(options.padding_idx) {
  register_parameter("weight", weight);
}

Tensor Embedding::forward(const Tensor& index) { return embedding(weight, index, padding_idx_); }

EmbeddingBag::EmbeddingBag(const EmbeddingBagOptions& options)
    : weight(make_table("EmbeddingBag", options.count, options.width, options.padding_idx)),
      options_{options.mode, options.padding_idx, options.include_last_offset} {
  register_parameter("weight", weight);
}

Tensor EmbeddingBag::reduce(const Tensor& index, const Tensor& offsets,
                            const Tensor& per_sample_weights) const {
  return embedding_bag(weight, index, offsets, per_sample_weights, options_);
}

}  // namespace binade::nn
