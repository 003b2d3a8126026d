// Attention.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <optional>

namespace binade {

struct AttentionOptions {
  // Broadcasts to [..., queries, keys]. bool: true takes part; of the dtype of q: added to the
  // scaled scores, and gets a gradient if it wants one.
  Tensor mask = {};
  bool is_causal = false;            // query i sees keys 0 to i, also when the lengths differ
  std::optional<double> scale = {};  // 1 / sqrt(size) where not given
  // Each weight is dropped with this probability and the others are divided by 1 - dropout; 0 where
  // a model is not in training. Draws as many numbers as there are weights, the ones that the op
  // dropout would draw for the matrix of weights.
  double dropout = 0;
};
// dropout(softmax(q k^T scale + mask)) v over the last two dimensions: q [..., queries, size],
// k [..., keys, size], v [..., keys, value_size] -> [..., queries, value_size]; the leading
// dimensions broadcast. Keeps q, k, v, the result and one number per query for the backward, never
// a matrix of queries by keys, also with dropout: what was dropped is drawn again. A query that
// sees no key gives zeros.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});

}  // namespace binade
