// GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019).
//
//   nn::Gpt2 model;                                                       // 124M parameters
//   model.load_published(train::load_tensors("gpt2/model.safetensors"));  // or train it yourself
//   Tensor text = model.generate(tokens, {.tokens = 50, .top_k = 40});
//
// Parameters have the names of the published checkpoint: "wte.weight", "h.0.attn.c_attn.weight".
// The checkpoint stores the weights of attn.c_attn, attn.c_proj, mlp.c_fc and mlp.c_proj as
// [in, out]; here they are [out, in], as in Linear. So load_published() reads the checkpoint, while
// load_state() and train::load_model() read what state() and train::save_model() wrote.
#pragma once
#include <binade/nn/activation.h>
#include <binade/nn/embedding.h>
#include <binade/nn/linear.h>
#include <binade/nn/list.h>
#include <binade/nn/norm.h>

namespace binade::nn {

struct Gpt2Options {
  int64_t vocabulary = 50257;
  int64_t context = 1024;  // the largest number of tokens that it sees at once
  int64_t width = 768;     // a multiple of heads
  int64_t layers = 12;
  int64_t heads = 12;
  double dropout = 0.1;  // of embeddings, attention weights and branches, in training
  double eps = 1e-5;     // of the norms
};

// The published sizes: "gpt2" (124M parameters), "gpt2-medium" (355M), "gpt2-large" (774M) or
// "gpt2-xl" (1558M); for any other name the error lists them.
Gpt2Options gpt2_options(std::string_view name);

struct GenerateOptions {
  int64_t tokens;          // to add to each row
  double temperature = 1;  // divides the logits; 0: always the most likely token
  int64_t top_k = 0;       // draws only among the top_k most likely tokens; 0: among all
  // The end token: a row that has it gets only more of it; generation ends when all rows have it.
  std::optional<int64_t> end = std::nullopt;
};

// Causal self-attention: x [N, T, width] -> the same sizes.
class Gpt2Attention : public Module {
 public:
  using Options = Gpt2Options;
  explicit Gpt2Attention(const Gpt2Options& options);
  Gpt2Attention(Module& parent, std::string_view name, const Gpt2Options& options)
      : Gpt2Attention(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Linear c_attn;  // queries, keys and values
  Linear c_proj;
  Dropout resid_dropout;

 private:
  int64_t heads_;
  double dropout_;
};

// c_proj(gelu_tanh(c_fc(x))), four times as wide inside.
class Gpt2MLP : public Module {
 public:
  using Options = Gpt2Options;
  explicit Gpt2MLP(const Gpt2Options& options);
  Gpt2MLP(Module& parent, std::string_view name, const Gpt2Options& options) : Gpt2MLP(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Linear c_fc, c_proj;
  Dropout dropout;
};

// y = x + attn(ln_1(x)), then y + mlp(ln_2(y)).
class Gpt2Block : public Module {
 public:
  using Options = Gpt2Options;
  explicit Gpt2Block(const Gpt2Options& options);
  Gpt2Block(Module& parent, std::string_view name, const Gpt2Options& options)
      : Gpt2Block(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  LayerNorm ln_1;
  Gpt2Attention attn;
  LayerNorm ln_2;
  Gpt2MLP mlp;
};

// index i64 [N, T] with T at most the context -> logits [N, T, vocabulary] of each next token.
class Gpt2 : public Module {
 public:
  using Options = Gpt2Options;
  explicit Gpt2(const Gpt2Options& options = {});
  Gpt2(Module& parent, std::string_view name, const Gpt2Options& options = {}) : Gpt2(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& index) override;

  // prompt i64 [N, T], on the model's device, T from 1 -> [N, T + tokens]; fewer if all rows have
  // ended. Each step sees the last `context` tokens and computes all of them again: there is no
  // cache of keys and values. Draws from generator(). Dropout is off meanwhile; the modes are
  // restored, also after an error.
  Tensor generate(const Tensor& prompt, const GenerateOptions& options);

  // Works as load_state(), for a state in the published layout. The names may begin with
  // "transformer.", as in files with a head; the causal masks "h.0.attn.bias" and
  // "h.0.attn.masked_bias" are not used. A state() or a file of train::save_model() has the other
  // layout, so it is an error. The options apply to the names without "transformer.".
  LoadReport load_published(const NamedTensors& state, const LoadOptions& options = {});
  // state() in the published layout, for train::save_tensors(). Shares memory with the model.
  NamedTensors published_state() const { return swap_layout(state()); }
  // The tensors of these names in the other layout: from [out, in] to [in, out], and back.
  static NamedTensors swap_layout(const NamedTensors& tensors);

  const Gpt2Options& options() const { return options_; }

  Embedding wte;  // tokens
  Embedding wpe;  // positions
  Dropout drop;
  List<Gpt2Block> h{*this, "h"};
  LayerNorm ln_f;
  Linear lm_head;  // its weight is wte's

 private:
  Tensor hidden(const Tensor& index);
  Tensor next_logits(const Tensor& tokens);

  Gpt2Options options_;
};

}  // namespace binade::nn
