// Attention.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <optional>

namespace binade {

struct AttentionOptions {
  // Broadcasts to [..., queries, keys]. A bool mask is true where a key takes part. A mask of q's
  // dtype is added to the scaled scores and gets a gradient if it requires one.
  Tensor mask = {};
  bool is_causal = false;            // query i sees keys 0 to i, also when the lengths differ
  std::optional<double> scale = {};  // default: 1 / sqrt(size)
  // Each weight is dropped with this probability and the others are divided by 1 - dropout. Pass 0
  // outside training. Draws one random number per weight, the same numbers as the op dropout would
  // draw for the matrix of weights.
  double dropout = 0;
  // Grouped-query attention (Ainslie et al., "GQA", 2023): q [..., heads, queries, size], k and v
  // [..., groups, keys, size], where groups divides heads. The first heads / groups heads share the
  // keys and values of group 0, and so on, as in PyTorch.
  bool enable_gqa = false;
};
// dropout(softmax(q k^T scale + mask)) v over the last two dimensions: q [..., queries, size], k
// [..., keys, size], v [..., keys, value_size] -> [..., queries, value_size]; the leading
// dimensions broadcast. Saves q, k, v, the result and one number per query for the backward, never
// a matrix of queries by keys. With dropout the backward draws the same random numbers again. A
// query that sees no key gives zeros.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});

}  // namespace binade
