#include <binade/core/ops.h>
#include <binade/nn/fusion_internal.h>
#include <binade/nn/transformer.h>

namespace binade::nn {

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerEncoderLayerOptions& options)
    : self_attn({.embed = options.embed,
                 .heads = options.heads,
                 .dropout = options.dropout,
                 .bias = options.bias,
                 .batch_first = options.batch_first}),
      linear1({.in = options.embed, .out = options.feedforward, .bias = options.bias}),
      linear2({.in = options.feedforward, .out = options.embed, .bias = options.bias}),
      norm1({.normalized_shape = {options.embed}, .eps = options.eps, .bias = options.bias}),
      norm2({.normalized_shape = {options.embed}, .eps = options.eps, .bias = options.bias}),
      options_(options) {
  register_module("self_attn", self_attn);
  register_module("linear1", linear1);
  register_module("linear2", linear2);
  register_module("norm1", norm1);
  register_module("norm2", norm2);
}

Tensor TransformerEncoderLayer::encode(const Tensor& x, const AttentionMask& mask) {
  return scoped([&] { return run(x, mask); });
}

Tensor TransformerEncoderLayer::run(const Tensor& x, const AttentionMask& mask) {
  if (options_.norm_first) {
    const Tensor h = x + attention_branch(norm1(x), mask);
    return h + feedforward_branch(norm2(h));
  }
  const Tensor h = norm1(x + attention_branch(x, mask));
  return norm2(h + feedforward_branch(h));
}

Tensor TransformerEncoderLayer::attention_branch(const Tensor& x, const AttentionMask& mask) {
  return drop(self_attn.attend(x, x, x, mask));
}

Tensor TransformerEncoderLayer::feedforward_branch(const Tensor& x) {
  if (options_.activation == FeedforwardActivation::relu) {
    return drop(linear2(drop(Fusion::run({.first = linear1, .relu = true}, x))));
  }
  const bool drops = is_training() && options_.dropout > 0;
  return drops ? drop(linear2(drop(gelu(linear1(x)))))
               : Fusion::run_feedforward(linear1, linear2, x);
}

Tensor TransformerEncoderLayer::drop(const Tensor& x) const {
  return is_training() && options_.dropout > 0 ? dropout(x, options_.dropout) : x;
}

}  // namespace binade::nn
