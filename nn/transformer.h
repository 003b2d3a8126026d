// Encoder and decoder of a transformer (Vaswani et al., 2017). All inputs and results are [length,
// batch, embed], or [batch, length, embed] with batch_first. Parameters have PyTorch's names.
//
// Unlike PyTorch's stacks, whose layers start as copies of one layer, every layer draws its own
// initial weights.
#pragma once
#include <binade/nn/attention.h>
#include <binade/nn/list.h>
#include <binade/nn/norm.h>

namespace binade::nn {

enum class FeedforwardActivation : uint8_t { relu, gelu };

struct TransformerLayerOptions {
  int64_t embed;
  int64_t heads;
  int64_t feedforward = 2048;
  double dropout = 0.1;  // of attention weights, of all branches and between the linear layers
  FeedforwardActivation activation = FeedforwardActivation::relu;
  double eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;  // x + branch(norm(x)), else norm(x + branch(x))
  bool bias = true;
};
using TransformerEncoderLayerOptions = TransformerLayerOptions;
using TransformerDecoderLayerOptions = TransformerLayerOptions;

// Masks of a decoder: among the targets, and from targets to the memory.
struct DecoderMasks {
  AttentionMask self = {};
  AttentionMask memory = {};
};

// x [length, batch, embed] -> the same sizes.
class TransformerEncoderLayer : public Module {
 public:
  using Options = TransformerEncoderLayerOptions;
  explicit TransformerEncoderLayer(const TransformerEncoderLayerOptions& options);
  TransformerEncoderLayer(Module& parent, std::string_view name,
                          const TransformerEncoderLayerOptions& options)
      : TransformerEncoderLayer(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override { return run(x, {}); }
  Tensor encode(const Tensor& x, const AttentionMask& mask);
  using Module::operator();
  Tensor operator()(const Tensor& x, const AttentionMask& mask) { return encode(x, mask); }

  MultiheadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;

 private:
  Tensor run(const Tensor& x, const AttentionMask& mask);

  TransformerEncoderLayerOptions options_;
};

// target [length, batch, embed], memory [keys, batch, embed] -> the sizes of target.
class TransformerDecoderLayer : public Module {
 public:
  using Options = TransformerDecoderLayerOptions;
  explicit TransformerDecoderLayer(const TransformerDecoderLayerOptions& options);
  TransformerDecoderLayer(Module& parent, std::string_view name,
                          const TransformerDecoderLayerOptions& options)
      : TransformerDecoderLayer(options) {
    join(parent, name);
  }
  Tensor operator()(const Tensor& target, const Tensor& memory, const DecoderMasks& masks = {});

  MultiheadAttention self_attn, multihead_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2, norm3;

 private:
  Tensor run(const Tensor& target, const Tensor& memory, const DecoderMasks& masks);

  TransformerDecoderLayerOptions options_;
};

struct TransformerStackOptions {
  TransformerLayerOptions layer;
  int64_t layers;
  bool norm = false;  // a LayerNorm after the last layer, "norm"; common with norm_first
};

// layers.0, layers.1, ..., norm.
class TransformerEncoder : public Module {
 public:
  using Options = TransformerStackOptions;
  explicit TransformerEncoder(const TransformerStackOptions& options);
  TransformerEncoder(Module& parent, std::string_view name, const TransformerStackOptions& options)
      : TransformerEncoder(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override { return run(x, {}); }
  using Module::operator();
  Tensor operator()(const Tensor& x, const AttentionMask& mask);

  List<TransformerEncoderLayer> layers{*this, "layers"};
  std::unique_ptr<LayerNorm> norm;  // or null

 private:
  Tensor run(const Tensor& x, const AttentionMask& mask);
};

class TransformerDecoder : public Module {
 public:
  using Options = TransformerStackOptions;
  explicit TransformerDecoder(const TransformerStackOptions& options);
  TransformerDecoder(Module& parent, std::string_view name, const TransformerStackOptions& options)
      : TransformerDecoder(options) {
    join(parent, name);
  }
  Tensor operator()(const Tensor& target, const Tensor& memory, const DecoderMasks& masks = {});

  List<TransformerDecoderLayer> layers{*this, "layers"};
  std::unique_ptr<LayerNorm> norm;  // or null
};

}  // namespace binade::nn
