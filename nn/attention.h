// Multi-head attention (Vaswani et al., "Attention Is All You Need", 2017).
#pragma once
#include <binade/nn/linear.h>

namespace binade::nn {

struct MultiheadAttentionOptions {
  int64_t embed;  // size of queries and results; a multiple of heads
  int64_t heads;
  double dropout = 0;  // of the attention weights, in training
  bool bias = true;
  int64_t key_size = 0;  // size of keys and values; default: embed
  int64_t value_size = 0;
  bool batch_first = false;
  // Grouped-query attention: the number of heads of keys and values. Each is shared by heads /
  // kv_heads heads of queries. Default: heads. If it differs from heads, the weights are
  // q_proj_weight, k_proj_weight and v_proj_weight.
  int64_t kv_heads = 0;
};

// Says which query may attend to which key. mask broadcasts to [batch, heads, queries, keys]; with
// three dimensions it is [batch heads, queries, keys]. As in PyTorch's modules a bool mask is true
// where attention is not allowed; a floating mask is added to the scores. The op
// scaled_dot_product_attention() takes the opposite bool mask, true where a key takes part.
struct AttentionMask {
  Tensor mask = {};
  bool is_causal = false;
  // [batch, keys]: a bool is true for keys that no query sees (padding); a floating one is
  // added to the scores. A query that sees no key gives zeros, where PyTorch gives NaN.
  Tensor key_padding = {};
};

// Inputs [length, batch, size], or [batch, length, size] with batch_first.
class MultiheadAttention : public Module {
 public:
  using Options = MultiheadAttentionOptions;
  explicit MultiheadAttention(const MultiheadAttentionOptions& options);
  MultiheadAttention(Module& parent, std::string_view name,
                     const MultiheadAttentionOptions& options)
      : MultiheadAttention(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override { return run(x, x, x, {}); }  // self-attention
  // The matrix of attention weights is never stored, with or without dropout. attend() is another
  // name for the call with several tensors.
  using Module::operator();
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                    const AttentionMask& mask = {}) {
    return attend(query, key, value, mask);
  }
  Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value,
                const AttentionMask& mask = {});

  Tensor in_proj_weight;                // [3 embed, embed], or undefined if sizes differ; then:
  Tensor q_proj_weight;                 // [embed, embed]
  Tensor k_proj_weight, v_proj_weight;  // [kv_heads embed / heads, size]
  Tensor in_proj_bias;                  // [rows of q, k and v] or undefined
  Linear out_proj;

 private:
  Tensor run(const Tensor& query, const Tensor& key, const Tensor& value,
             const AttentionMask& mask);
  Tensor projection(const Tensor& x, int part) const;
  Tensor split_heads(const Tensor& x, int64_t heads) const;
  int64_t kv_size() const { return options_.kv_heads * (options_.embed / options_.heads); }

  MultiheadAttentionOptions options_;
};

}  // namespace binade::nn
