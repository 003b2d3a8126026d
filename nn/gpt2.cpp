// GPT-2: its blocks, generation, and the layout of the published checkpoint.
#include <binade/core/ops.h>
#include <binade/core/ops/attention.h>
#include <binade/nn/fusion_internal.h>
#include <binade/nn/gpt2.h>
#include <binade/nn/init.h>
#include <binade/nn/options_internal.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace binade::nn {
namespace {

constexpr double kWeightStd = 0.02;

// The options, checked before anything is allocated.
const Gpt2Options& checked(const Gpt2Options& o) {
  check_sizes("Gpt2", {{"vocabulary", o.vocabulary},
                       {"context", o.context},
                       {"width", o.width},
                       {"layers", o.layers},
                       {"heads", o.heads}});
  check(o.width % o.heads == 0, "Gpt2: got width = ", o.width, ", heads = ", o.heads,
        ", expected a multiple of heads");
  check(o.dropout >= 0 && o.dropout < 1 && o.eps > 0, "Gpt2: got dropout = ", o.dropout,
        ", eps = ", o.eps, ", expected dropout in [0, 1) and a positive eps");
  return o;
}

LayerNormOptions norm_of(const Gpt2Options& o) {
  return {.normalized_shape = {o.width}, .eps = o.eps};
}

void check_tokens(const char* name, const Tensor& index) {
  check(index.defined(), name, ": got an undefined tensor, expected token numbers, i64 [N, T]");
  check(index.dim() == 2 && index.dtype() == DType::i64, name, ": got ", index.dtype(), " ",
        index.sizes(), ", expected token numbers, i64 [N, T]");
}

void check_generation(const Gpt2Options& model, const Tensor& prompt, const GenerateOptions& o) {
  check_tokens("generate", prompt);
  check(prompt.size(1) > 0,
        "generate: got a prompt of no token, expected one or more; begin with the token that "
        "stands for the end of a text");
  check(o.tokens >= 0 && std::isfinite(o.temperature) && o.temperature >= 0,
        "generate: got tokens = ", o.tokens, ", temperature = ", o.temperature,
        ", expected no negative numbers");
  check(o.top_k >= 0 && o.top_k <= model.vocabulary, "generate: got top_k = ", o.top_k,
        ", expected 0 to the vocabulary of ", model.vocabulary);
  check(!o.end || (*o.end >= 0 && *o.end < model.vocabulary),
        "generate: got end = ", o.end.value_or(0), ", expected a token from 0 to ",
        model.vocabulary - 1);
}

// One token per row: logits f32 [N, vocabulary] -> i64 [N, 1].
Tensor draw_tokens(const Tensor& logits, const GenerateOptions& o) {
  if (o.temperature == 0) {
    return argmax(logits, 1, true);
  }
  Tensor scores = logits / o.temperature;
  if (o.top_k > 0) {
    const Tensor least = slice(topk(scores, o.top_k, 1).values, 1, o.top_k - 1, o.top_k);
    scores = masked_fill(scores, scores < least, -std::numeric_limits<double>::infinity());
  }
  return multinomial(softmax(scores, 1), 1);
}

// Evaluation mode for a scope. A module that is in evaluation mode is left alone, because other
// threads may be running it.
class Evaluation {
 public:
  explicit Evaluation(Module& module) : module_(module), modes_(module.training_modes()) {
    if (std::ranges::find(modes_, true) != modes_.end()) {
      module_.eval();
    } else {
      modes_.clear();
    }
  }
  ~Evaluation() {
    if (!modes_.empty()) {
      module_.set_training_modes(modes_);
    }
  }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  Module& module_;
  std::vector<bool> modes_;
};

// The published checkpoint has these weights as [in, out].
bool is_swapped(std::string_view name) {
  constexpr std::string_view kEnds[] = {".attn.c_attn.weight", ".attn.c_proj.weight",
                                        ".mlp.c_fc.weight", ".mlp.c_proj.weight"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

bool is_mask(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

}  // namespace

Gpt2Options gpt2_options(std::string_view name) {
  if (name == "gpt2") {
    return {};
  }
  if (name == "gpt2-medium") {
    return {.width = 1024, .layers = 24, .heads = 16};
  }
  if (name == "gpt2-large") {
    return {.width = 1280, .layers = 36, .heads = 20};
  }
  check(name == "gpt2-xl", "gpt2_options: got '", name,
        "', expected gpt2, gpt2-medium, gpt2-large or gpt2-xl");
  return {.width = 1600, .layers = 48, .heads = 25};
}

Gpt2Attention::Gpt2Attention(const Gpt2Options& options)
    : c_attn(*this, "c_attn", {.in = checked(options).width, .out = 3 * options.width}),
      c_proj(*this, "c_proj", {.in = options.width, .out = options.width}),
      resid_dropout(*this, "resid_dropout", {.p = options.dropout}),
      heads_(options.heads),
      dropout_(options.dropout) {}

Tensor Gpt2Attention::forward(const Tensor& x) {
  check(x.dim() == 3, "Gpt2Attention: got shape ", x.sizes(), ", expected [N, T, width]");
  const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
  std::vector<Tensor> parts = split(c_attn(x), width, -1);
  for (Tensor& part : parts) {  // [N, heads, T, width / heads], a view
    part = transpose(reshape(part, {batch, length, heads_, width / heads_}), 1, 2);
  }
  const Tensor y = scaled_dot_product_attention(
      parts[0], parts[1], parts[2], {.is_causal = true, .dropout = is_training() ? dropout_ : 0});
  return resid_dropout(c_proj(reshape(transpose(y, 1, 2), {batch, length, width})));
}

Gpt2MLP::Gpt2MLP(const Gpt2Options& options)
    : c_fc(*this, "c_fc", {.in = checked(options).width, .out = 4 * options.width}),
      c_proj(*this, "c_proj", {.in = 4 * options.width, .out = options.width}),
      dropout(*this, "dropout", {.p = options.dropout}) {}

Tensor Gpt2MLP::forward(const Tensor& x) {
  return dropout(Fusion::run_feedforward(c_fc, c_proj, x, Activation::gelu_tanh));
}

Gpt2Block::Gpt2Block(const Gpt2Options& options)
    : ln_1(*this, "ln_1", norm_of(checked(options))),
      attn(*this, "attn", options),
      ln_2(*this, "ln_2", norm_of(options)),
      mlp(*this, "mlp", options) {}

Tensor Gpt2Block::forward(const Tensor& x) {
  const Tensor y = x + attn(ln_1(x));
  return y + mlp(ln_2(y));
}

// Initial weights as in the paper: the branches of L layers add up, so the weights that end a
// branch are smaller by sqrt(2 L).
Gpt2::Gpt2(const Gpt2Options& options)
    : wte(*this, "wte", {.count = checked(options).vocabulary, .width = options.width}),
      wpe(*this, "wpe", {.count = options.context, .width = options.width}),
      drop(*this, "drop", {.p = options.dropout}),
      ln_f(*this, "ln_f", norm_of(options)),
      lm_head(*this, "lm_head", {.in = 1, .out = 1, .bias = false}),  // takes wte's weight below
      options_(options) {
  for (int64_t i = 0; i < options.layers; ++i) {
    h.emplace(options);
  }
  lm_head.weight = wte.weight;
  for (const auto& [name, w] : named_parameters()) {
    if (w.dim() == 2) {
      const double shrink = name.ends_with("c_proj.weight") ? std::sqrt(2.0 * options.layers) : 1;
      init::normal(w, 0, kWeightStd / shrink);
    } else if (name.ends_with("bias")) {
      init::zeros(w);
    }
  }
}

// The result of ln_f, [N, T, width].
Tensor Gpt2::hidden(const Tensor& index) {
  check_tokens("Gpt2", index);
  const int64_t length = index.size(1);
  check(length <= options_.context, "Gpt2: got ", length, " tokens, expected at most the context, ",
        options_.context);
  Tensor x = drop(wte(index) + slice(wpe.weight, 0, 0, length));
  for (Gpt2Block& block : h) {
    x = block(x);
  }
  return ln_f(x);
}

Tensor Gpt2::forward(const Tensor& index) { return lm_head(hidden(index)); }

// f32 [N, vocabulary], for the token after these [N, T].
Tensor Gpt2::next_logits(const Tensor& tokens) {
  const int64_t length = tokens.size(1);
  const Tensor window = slice(tokens, 1, std::max<int64_t>(length - options_.context, 0), length);
  return scoped([&] { return lm_head(select(hidden(window), 1, -1)); }).to(DType::f32);
}

Tensor Gpt2::generate(const Tensor& prompt, const GenerateOptions& options) {
  check_generation(options_, prompt, options);
  const NoGradGuard guard;
  const Evaluation evaluation(*this);
  Tensor tokens = prompt, ended;
  for (int64_t i = 0; i < options.tokens; ++i) {
    Tensor next = draw_tokens(next_logits(tokens), options);
    if (options.end) {
      const auto end = static_cast<double>(*options.end);
      next = ended.defined() ? masked_fill(next, ended, end) : next;
      ended = next == end;
    }
    tokens = cat({tokens, next}, 1);
    if (ended.defined() && all(ended).item() != 0) {
      break;
    }
  }
  return tokens;
}

NamedTensors Gpt2::swap_layout(const NamedTensors& tensors) {
  NamedTensors swapped;
  for (const auto& [name, tensor] : tensors) {
    const bool turns = is_swapped(name) && tensor.defined() && tensor.dim() == 2;
    swapped.emplace_back(name, turns ? transpose(tensor, 0, 1) : tensor);
  }
  return swapped;
}

LoadReport Gpt2::load_published(const NamedTensors& state, const LoadOptions& options) {
  constexpr std::string_view kPrefix = "transformer.";
  const Dims own{3 * options_.width, options_.width};
  NamedTensors given;
  for (const auto& [name, tensor] : state) {
    const std::string inner = name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
    check(!inner.ends_with(".attn.c_attn.weight") || !tensor.defined() || tensor.sizes() != own,
          "load_published: got ", name, " ", own,
          ", the layout of save_model() and state(), expected that of the published checkpoint, ",
          Dims{own[1], own[0]}, "; use load_model() or load_state(); nothing was changed");
    if (!is_mask(inner)) {
      given.emplace_back(inner, tensor);
    }
  }
  try {
    return load_state(swap_layout(given), options);
  } catch (Error& error) {
    error.add_context(
        "(load_published: the shapes of attn.c_* and mlp.c_* are shown as [out, in], the state has "
        "[in, out])");
    throw;
  }
}

}  // namespace binade::nn
