// The encoder layer of a transformer (Vaswani et al., 2017).
#pragma once
#include <binade/nn/attention.h>
#include <binade/nn/norm.h>

namespace binade::nn {

enum class FeedforwardActivation : uint8_t { relu, gelu };

struct TransformerEncoderLayerOptions {
  int64_t embed;
  int64_t heads;
  int64_t feedforward = 2048;
  double dropout = 0.1;  // of attention weights, of both branches and between the linear layers
  FeedforwardActivation activation = FeedforwardActivation::relu;
  double eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;  // x + branch(norm(x)), else norm(x + branch(x))
  bool bias = true;
};

// x [length, batch, embed], or [batch, length, embed] with batch_first.
class TransformerEncoderLayer : public Module {
 public:
  using Options = TransformerEncoderLayerOptions;
  explicit TransformerEncoderLayer(const TransformerEncoderLayerOptions& options);
  Tensor forward(const Tensor& x) override { return run(x, {}); }
  Tensor encode(const Tensor& x, const AttentionMask& mask);

  MultiheadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;

 private:
  Tensor run(const Tensor& x, const AttentionMask& mask);
  Tensor attention_branch(const Tensor& x, const AttentionMask& mask);
  Tensor feedforward_branch(const Tensor& x);
  Tensor drop(const Tensor& x) const;

  TransformerEncoderLayerOptions options_;
};

}  // namespace binade::nn
