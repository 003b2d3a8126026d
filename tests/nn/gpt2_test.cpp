// Gpt2: its parameters, the published layout and wrong states, generation. PyTorch's results are in
// tests/parity.
#include <binade/core/autograd/autograd.h>
#include <binade/core/ops.h>
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/gpt2.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/error_of.h"

namespace binade::nn::gpt2_test {
namespace {

constexpr Gpt2Options kSmall{
    .vocabulary = 11, .context = 6, .width = 8, .layers = 2, .heads = 2, .dropout = 0};

int64_t expected_count(const Gpt2Options& o) {
  const int64_t block = 12 * o.width * o.width + 13 * o.width;
  return (o.vocabulary + o.context + 2) * o.width + o.layers * block;
}

Tensor tokens(const Dims& sizes) { return randint(0, kSmall.vocabulary, sizes); }

void expect_error(const std::function<void()>& f, const std::vector<std::string>& parts) {
  const std::string got = error_of(f);
  for (const std::string& part : parts) {
    EXPECT_NE(got.find(part), std::string::npos) << got << "\nexpected: " << part;
  }
}

// A state with random values in the published layout, as a file with a head has it.
NamedTensors published(const Gpt2& model) {
  NamedTensors state;
  for (const auto& [name, tensor] : model.published_state()) {
    state.emplace_back("transformer." + name, randn(tensor.sizes()) * 0.3);
  }
  return state;
}

// The model of the published layout, written out: x @ w + b with w [in, out].
Tensor reference(const NamedTensors& state, const Tensor& index) {
  const auto get = [&](const std::string& name) {
    for (const auto& [key, tensor] : state) {
      if (key == "transformer." + name) {
        return tensor;
      }
    }
    fail("no ", name);
  };
  const auto conv1d = [&](const Tensor& x, const std::string& name) {
    return matmul(x, get(name + ".weight")) + get(name + ".bias");
  };
  const auto norm = [&](const Tensor& x, const std::string& name) {
    return layer_norm(x, {kSmall.width}, get(name + ".weight"), get(name + ".bias"));
  };
  const int64_t batch = index.size(0), length = index.size(1), size = kSmall.width / kSmall.heads;
  Tensor x = embedding(get("wte.weight"), index) + slice(get("wpe.weight"), 0, 0, length);
  for (int64_t i = 0; i < kSmall.layers; ++i) {
    const std::string at = text("h.", i, ".");
    std::vector<Tensor> qkv = chunk(conv1d(norm(x, at + "ln_1"), at + "attn.c_attn"), 3, -1);
    for (Tensor& part : qkv) {
      part = transpose(reshape(part, {batch, length, kSmall.heads, size}), 1, 2);
    }
    Tensor scores = matmul(qkv[0], transpose(qkv[1], -2, -1)) / std::sqrt(double(size));
    scores = masked_fill(scores, triu(ones({length, length}), 1) > 0, -INFINITY);
    const Tensor y = transpose(matmul(softmax(scores, -1), qkv[2]), 1, 2);
    x = x + conv1d(reshape(y, {batch, length, kSmall.width}), at + "attn.c_proj");
    const Tensor inner = gelu_tanh(conv1d(norm(x, at + "ln_2"), at + "mlp.c_fc"));
    x = x + conv1d(inner, at + "mlp.c_proj");
  }
  return matmul(norm(x, "ln_f"), transpose(get("wte.weight"), 0, 1));
}

TEST(Gpt2, HasThePublishedParameters) {
  Gpt2 model(kSmall);
  EXPECT_EQ(model.parameter_count(), expected_count(kSmall));
  EXPECT_EQ(expected_count(gpt2_options("gpt2")), 124'439'808);
  EXPECT_EQ(expected_count(gpt2_options("gpt2-medium")), 354'823'168);
  EXPECT_EQ(expected_count(gpt2_options("gpt2-large")), 774'030'080);
  EXPECT_EQ(expected_count(gpt2_options("gpt2-xl")), 1'557'611'200);
  const NamedTensors state = model.state();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) {
    names.push_back(name);
  }
  const std::vector<std::string> first(names.begin() + 2, names.begin() + 14);
  EXPECT_EQ(first, (std::vector<std::string>{
                       "h.0.ln_1.weight", "h.0.ln_1.bias", "h.0.attn.c_attn.weight",
                       "h.0.attn.c_attn.bias", "h.0.attn.c_proj.weight", "h.0.attn.c_proj.bias",
                       "h.0.ln_2.weight", "h.0.ln_2.bias", "h.0.mlp.c_fc.weight",
                       "h.0.mlp.c_fc.bias", "h.0.mlp.c_proj.weight", "h.0.mlp.c_proj.bias"}));
  EXPECT_EQ(names.front(), "wte.weight");
  EXPECT_EQ(names.back(), "ln_f.bias");
  EXPECT_EQ(names.size(), 2u + 2 * 12 + 2);
}

TEST(Gpt2, StartsWithThePapersWeights) {
  manual_seed(1);
  Gpt2 model({.vocabulary = 64, .context = 32, .width = 64, .layers = 2, .heads = 4});
  for (const auto& [name, w] : model.named_parameters()) {
    const double std = w.dim() == 2 ? binade::std(w).item() : 0;
    const double expected = name.ends_with("c_proj.weight") ? 0.01 : 0.02;
    EXPECT_NEAR(std, w.dim() == 2 ? expected : 0, 0.001) << name;
    if (w.dim() == 1) {
      EXPECT_EQ(mean(w).item(), name.ends_with("bias") ? 0 : 1) << name;
    }
  }
}

TEST(Gpt2, LoadsThePublishedLayout) {
  manual_seed(2);
  Gpt2 model(kSmall);
  const NamedTensors state = published(model);
  NamedTensors file = state;
  file.emplace_back("transformer.h.0.attn.bias", ones({1, 1, 6, 6}));
  file.emplace_back("transformer.h.1.attn.masked_bias", full({}, -1e4));
  file.emplace_back("lm_head.weight", state[0].second.clone());
  const LoadReport report = model.load_published(file);
  EXPECT_EQ(report.loaded.size(), 28u);
  const Tensor index = tokens({3, 5});
  const Tensor got = model(index), want = reference(state, index);
  EXPECT_EQ(got.sizes(), (Dims{3, 5, 11}));
  EXPECT_TRUE(allclose(got, want, 1e-4, 1e-5)) << amax(abs(got - want)).item();
  const NamedTensors back = model.published_state();
  for (size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ("transformer." + back[i].first, state[i].first);
    EXPECT_TRUE(equal(back[i].second, state[i].second)) << back[i].first;
  }
  NamedTensors bare;
  for (const auto& [name, tensor] : back) {
    bare.emplace_back(name, tensor.clone());
  }
  Gpt2 other(kSmall);
  other.load_published(bare);
  EXPECT_TRUE(equal(other(index), got));
}

TEST(Gpt2, WrongStatesAreOneErrorAndChangeNothing) {
  manual_seed(3);
  Gpt2 model(kSmall);
  const Tensor index = tokens({2, 6});
  const Tensor before = model(index).detach();
  const NamedTensors good = published(model);
  const auto load = [&](NamedTensors state) { return [&, state] { model.load_published(state); }; };

  expect_error([&] { model.load_published(model.state()); },
               {"load_published: got h.0.attn.c_attn.weight [24, 8]", "expected", "[8, 24]",
                "use load_model() or load_state()"});
  expect_error([&] { model.load_state(model.published_state()); },
               {"h.0.attn.c_attn.weight has [8, 24], expected [24, 8]"});
  NamedTensors state = good;
  state.erase(state.begin() + 4);
  state[9].second = ones({8, 33});
  expect_error(load(state), {"1 missing: h.0.attn.c_attn.weight", "1 of the wrong shape",
                             "has [33, 8], expected [32, 8]", "shown as [out, in]"});
  state = good;
  state[4].second = ones({24});
  expect_error(load(state), {"h.0.attn.c_attn.weight has [24]"});
  state = good;
  state.emplace_back("lm_head.weight", good[0].second * 2);
  expect_error(load(state), {"'wte.weight' [11, 8] and 'lm_head.weight' [11, 8] with different",
                             "ties them to one parameter"});
  state.back().second = ones({12, 8});
  expect_error(load(state), {"'lm_head.weight' [12, 8]"});
  EXPECT_TRUE(equal(model(index), before));
}

TEST(Gpt2, ExtendsAVocabulary) {
  manual_seed(4);
  Gpt2 model(kSmall), larger({.vocabulary = 13, .context = 6, .width = 8, .layers = 2, .heads = 2});
  const LoadReport report = larger.load_published(published(model), {.skip = {"wte"}});
  EXPECT_EQ(report.missing, (std::vector<std::string>{"wte.weight"}));
}

// In f32 on the CPU the feed-forward part is one op; under a policy it is three.
TEST(Gpt2, TrainsEveryParameter) {
  for (const Precision& precision : {Precision::full(), Precision::mixed(DType::bf16)}) {
    manual_seed(5);
    Gpt2 model(kSmall);
    model.to({}, precision);
    const Tensor logits = model(tokens({2, 6}));
    cross_entropy(flatten(logits, 0, 1), flatten(tokens({2, 6}))).backward();
    for (const binade::Parameter& p : model.parameters()) {
      ASSERT_TRUE(p.value.grad().defined()) << p.name;
      EXPECT_GT(amax(abs(p.value.grad())).item(), 0) << p.name;
    }
  }
}

TEST(Gpt2, GeneratesTheMostLikelyTokens) {
  manual_seed(6);
  Gpt2 model({.vocabulary = 11, .context = 6, .width = 8, .layers = 2, .heads = 2, .dropout = 0.5});
  model.load_published(published(model));
  const Tensor prompt = tokens({3, 4});
  const Tensor greedy = model.generate(prompt, {.tokens = 5, .temperature = 0});
  EXPECT_TRUE(model.is_training());
  model.eval();
  const NoGradGuard guard;
  Tensor want = prompt;
  for (int i = 0; i < 5; ++i) {  // beyond the context: the last six tokens
    const Tensor seen = slice(want, 1, std::max<int64_t>(0, want.size(1) - 6), want.size(1));
    want = cat({want, argmax(select(model(seen), 1, -1), 1, true)}, 1);
  }
  EXPECT_TRUE(equal(greedy, want));
  EXPECT_TRUE(equal(model.generate(prompt, {.tokens = 5, .top_k = 1}), want));
  EXPECT_TRUE(equal(model.generate(prompt, {.tokens = 0}), prompt));
}

TEST(Gpt2, DrawsWithTheProbabilitiesOfTheModel) {
  manual_seed(7);
  Gpt2 model(kSmall);
  model.load_published(published(model));
  const Tensor prompt = expand(tokens({1, 3}), {4000, 3}).contiguous();
  const NoGradGuard guard;
  const Tensor logits = model(slice(prompt, 0, 0, 1))[0][-1];
  for (const int64_t top_k : {0, 3}) {
    Tensor scores = logits / 0.7;
    if (top_k > 0) {
      scores = masked_fill(scores, scores < topk(scores, top_k).values[2], -INFINITY);
    }
    const Tensor p = softmax(scores, 0);
    const Tensor drawn = model.generate(prompt, {.tokens = 1, .temperature = 0.7, .top_k = top_k});
    const Tensor counts = bincount(select(drawn, 1, 3), {}, 11);
    for (int64_t i = 0; i < 11; ++i) {
      const double expected = 4000 * p.at(i);
      EXPECT_NEAR(counts.at(i), expected, 5 * std::sqrt(expected) + 1e-9) << i;
    }
  }
  manual_seed(8);
  const Tensor first = model.generate(prompt, {.tokens = 2});
  manual_seed(8);
  EXPECT_TRUE(equal(model.generate(prompt, {.tokens = 2}), first));
}

TEST(Gpt2, StopsAtTheEnd) {
  manual_seed(9);
  Gpt2 model(kSmall);
  model.load_published(published(model));
  const Tensor prompt = tokens({4, 2});
  const Tensor all = model.generate(prompt, {.tokens = 8, .temperature = 0});
  const auto end = static_cast<int64_t>(all[1].at(4));  // the third token of the second row
  const Tensor ended = model.generate(prompt, {.tokens = 8, .temperature = 0, .end = end});
  for (int64_t row = 0; row < 4; ++row) {
    bool after = false;
    for (int64_t t = 0; t < ended.size(1); ++t) {
      EXPECT_EQ(ended[int(row)].at(t), after ? double(end) : all[int(row)].at(t));
      after |= t >= 2 && ended[int(row)].at(t) == double(end);
    }
  }
  const Tensor alone =
      model.generate(slice(prompt, 0, 1, 2), {.tokens = 8, .temperature = 0, .end = end});
  EXPECT_LE(alone.size(1), 5);
}

TEST(Gpt2, WrongUsesAreErrors) {
  Gpt2 model(kSmall);
  expect_error([&] { model(tokens({1, 7})); }, {"got 7 tokens", "the context, 6"});
  expect_error([&] { model(tokens({7})); }, {"i64 [7], expected token numbers, i64 [N, T]"});
  expect_error([&] { model(randn({1, 3})); }, {"got f32 [1, 3]"});
  expect_error([&] { model(Tensor()); }, {"undefined"});
  expect_error([&] { model(full({1, 2}, 11).to(DType::i64)); }, {"11"});
  const auto generate = [&](const Dims& sizes, const GenerateOptions& options) {
    return error_of([&] { model.generate(tokens(sizes), options); });
  };
  EXPECT_NE(generate({1, 0}, {.tokens = 1}).find("no token"), std::string::npos);
  EXPECT_NE(generate({1, 2}, {.tokens = -1}).find("tokens = -1"), std::string::npos);
  EXPECT_NE(generate({1, 2}, {.tokens = 1, .temperature = -1}).find("-1"), std::string::npos);
  EXPECT_NE(generate({1, 2}, {.tokens = 1, .top_k = 12}).find("top_k = 12"), std::string::npos);
  EXPECT_NE(generate({1, 2}, {.tokens = 1, .end = 11}).find("end = 11"), std::string::npos);
  expect_error([] { Gpt2({.width = 10, .heads = 3}); }, {"expected a multiple of heads"});
  expect_error([] { Gpt2({.layers = 0}); }, {"layers = 0"});
  expect_error([] { Gpt2({.dropout = 1}); }, {"dropout = 1"});
  expect_error([] { gpt2_options("gpt3"); }, {"'gpt3'", "gpt2-medium"});
}

}  // namespace
}  // namespace binade::nn::gpt2_test
