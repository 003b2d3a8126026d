#include <binade/core/ops.h>
#include <binade/nn/fusion_internal.h>
#include <binade/nn/options_internal.h>
#include <binade/nn/transformer.h>

namespace binade::nn {
namespace {

MultiheadAttentionOptions attention_of(const TransformerLayerOptions& o) {
  return {.embed = o.embed,
          .heads = o.heads,
          .dropout = o.dropout,
          .bias = o.bias,
          .batch_first = o.batch_first};
}

LayerNormOptions norm_of(const TransformerLayerOptions& o) {
  return {.normalized_shape = {o.embed}, .eps = o.eps, .bias = o.bias};
}

LinearOptions widening_of(const TransformerLayerOptions& o) {
  check_sizes("Transformer", {{"feedforward", o.feedforward}});
  return {.in = o.embed, .out = o.feedforward, .bias = o.bias};
}

LinearOptions narrowing_of(const TransformerLayerOptions& o) {
  return {.in = o.feedforward, .out = o.embed, .bias = o.bias};
}

// The parts of the layers besides attention.
struct Branches {
  const TransformerLayerOptions& options;
  bool training;

  bool drops() const { return training && options.dropout > 0; }
  Tensor drop(const Tensor& x) const { return drops() ? dropout(x, options.dropout) : x; }
  // norm(x + branch(x)) or x + branch(norm(x)).
  template <class Branch>
  Tensor add(const Tensor& x, LayerNorm& norm, Branch&& branch) const {
    return options.norm_first ? x + branch(norm(x)) : norm(x + branch(x));
  }
  Tensor feedforward(Linear& linear1, Linear& linear2, const Tensor& x) const {
    if (options.activation == FeedforwardActivation::relu) {
      return drop(linear2(drop(Fusion::run({.first = linear1, .relu = true}, x))));
    }
    return drops() ? drop(linear2(drop(gelu(linear1(x)))))
                   : Fusion::run_feedforward(linear1, linear2, x);
  }
};

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerEncoderLayerOptions& options)
    : self_attn(attention_of(options)),
      linear1(widening_of(options)),
      linear2(narrowing_of(options)),
      norm1(norm_of(options)),
      norm2(norm_of(options)),
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
  const Branches branches{options_, is_training()};
  const Tensor h = branches.add(
      x, norm1, [&](const Tensor& y) { return branches.drop(self_attn.attend(y, y, y, mask)); });
  return branches.add(h, norm2,
                      [&](const Tensor& y) { return branches.feedforward(linear1, linear2, y); });
}

TransformerDecoderLayer::TransformerDecoderLayer(const TransformerDecoderLayerOptions& options)
    : self_attn(attention_of(options)),
      multihead_attn(attention_of(options)),
      linear1(widening_of(options)),
      linear2(narrowing_of(options)),
      norm1(norm_of(options)),
      norm2(norm_of(options)),
      norm3(norm_of(options)),
      options_(options) {
  register_module("self_attn", self_attn);
  register_module("multihead_attn", multihead_attn);
  register_module("linear1", linear1);
  register_module("linear2", linear2);
  register_module("norm1", norm1);
  register_module("norm2", norm2);
  register_module("norm3", norm3);
}

Tensor TransformerDecoderLayer::operator()(const Tensor& target, const Tensor& memory,
                                           const DecoderMasks& masks) {
  return scoped([&] { return run(target, memory, masks); });
}

Tensor TransformerDecoderLayer::run(const Tensor& target, const Tensor& memory,
                                    const DecoderMasks& masks) {
  const Branches branches{options_, is_training()};
  const Tensor h = branches.add(target, norm1, [&](const Tensor& y) {
    return branches.drop(self_attn.attend(y, y, y, masks.self));
  });
  const Tensor g = branches.add(h, norm2, [&](const Tensor& y) {
    return branches.drop(multihead_attn.attend(y, memory, memory, masks.memory));
  });
  return branches.add(g, norm3,
                      [&](const Tensor& y) { return branches.feedforward(linear1, linear2, y); });
}

TransformerEncoder::TransformerEncoder(const TransformerStackOptions& options) {
  check_sizes("TransformerEncoder", {{"layers", options.layers}});
  for (int64_t i = 0; i < options.layers; ++i) {
    layers.emplace(options.layer);
  }
  if (options.norm) {
    norm = std::make_unique<LayerNorm>(*this, "norm", norm_of(options.layer));
  }
}

Tensor TransformerEncoder::operator()(const Tensor& x, const AttentionMask& mask) {
  return scoped([&] { return run(x, mask); });
}

Tensor TransformerEncoder::run(const Tensor& x, const AttentionMask& mask) {
  Tensor y = x;
  for (TransformerEncoderLayer& layer : layers) {
    y = layer.encode(y, mask);
  }
  return norm ? (*norm)(y) : y;
}

TransformerDecoder::TransformerDecoder(const TransformerStackOptions& options) {
  check_sizes("TransformerDecoder", {{"layers", options.layers}});
  for (int64_t i = 0; i < options.layers; ++i) {
    layers.emplace(options.layer);
  }
  if (options.norm) {
    norm = std::make_unique<LayerNorm>(*this, "norm", norm_of(options.layer));
  }
}

Tensor TransformerDecoder::operator()(const Tensor& target, const Tensor& memory,
                                      const DecoderMasks& masks) {
  return scoped([&] {
    Tensor y = target;
    for (TransformerDecoderLayer& layer : layers) {
      y = layer(y, memory, masks);
    }
    return norm ? (*norm)(y) : y;
  });
}

}  // namespace binade::nn
