// The parts of embedding_bag (core/ops/index.h).
#pragma once
#include <binade/core/ops/index.h>

namespace binade::detail {

struct BagInputs {
  const Tensor &weight, &index, &offsets, &per_sample_weights;
};
Tensor embedding_bag(const BagInputs& inputs, const EmbeddingBagOptions& options);

}  // namespace binade::detail
