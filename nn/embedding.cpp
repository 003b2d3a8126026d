#include <binade/core/ops.h>
#include <binade/core/ops/index.h>
#include <binade/nn/embedding.h>
#include <binade/nn/init.h>
#include <binade/nn/options_internal.h>

namespace binade::nn {

Embedding::Embedding(const EmbeddingOptions& options) : padding_idx_(options.padding_idx) {
  check_sizes("Embedding", {{"count", options.count}, {"width", options.width}});
  check(!padding_idx_ || (*padding_idx_ >= -options.count && *padding_idx_ < options.count),
        "Embedding: got padding_idx = ", padding_idx_.value_or(0), ", expected ", -options.count,
        " to ", options.count - 1);
  weight = empty({options.count, options.width});
  init::normal(weight, 0, 1);
  if (padding_idx_) {
    select(weight, 0, *padding_idx_).fill_(0);
  }
  register_parameter("weight", weight);
}

Tensor Embedding::forward(const Tensor& index) { return embedding(weight, index, padding_idx_); }

}  // namespace binade::nn
