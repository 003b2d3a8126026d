// Modules as a user writes them: any forward(), registration where a member is declared, lists,
// lambdas, and the errors of what is left out.
#include <binade/binade.h>
#include <gtest/gtest.h>

#include <functional>

#include <tests/support/error_of.h>

// A user's program is not in Binade's namespaces.
namespace own_module_test {
namespace {

namespace nn = binade::nn;
using binade::Error;
using binade::error_of;
using binade::Tensor;

void expect_part(const std::string& whole, const std::string& part) {
  EXPECT_NE(whole.find(part), std::string::npos) << whole;
}

std::vector<std::string> names_of(const binade::NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    names.push_back(name);
  }
  return names;
}

struct Vae : nn::Callable<Vae> {
  struct Output {
    Tensor image, mean, log_variance;
  };
  Output forward(Tensor x) {
    const Tensor h = relu(encoder(x)), m = mean(h);
    return {decoder(m), m, log_variance(h)};
  }
  nn::Linear encoder{*this, "encoder", {.in = 12, .out = 8}};
  nn::Linear mean{*this, "mean", {.in = 8, .out = 2}};
  nn::Linear log_variance{*this, "log_variance", {.in = 8, .out = 2}};
  nn::Linear decoder{*this, "decoder", {.in = 2, .out = 12}};
};

// Several inputs, one of them optional.
struct Gated : nn::Callable<Gated> {
  using Callable::Callable;
  Tensor forward(const Tensor& x, const Tensor& gate = {}) {
    const Tensor y = fc(x);
    return gate.defined() ? y * gate : y;
  }
  nn::Linear fc{*this, "fc", {.in = 4, .out = 4}};
};

struct Pairs : nn::Callable<Pairs> {
  using Callable::Callable;
  std::vector<Tensor> forward(const std::vector<Tensor>& all, double factor) {
    std::vector<Tensor> out;
    for (const Tensor& x : all) {
      out.push_back(fc(x) * factor);
    }
    return out;
  }
  std::tuple<Tensor, int> forward(const Tensor& x, int n) { return {fc(x), n}; }
  nn::Linear fc{*this, "fc", {.in = 4, .out = 4}};
};

// The old way.
class Old : public nn::Module {
 public:
  Old() {
    register_module("fc", fc);
    register_parameter("scale", scale);
  }
  Tensor forward(const Tensor& x) override { return fc(x) * scale; }
  nn::Linear fc{{.in = 4, .out = 4}};
  Tensor scale = binade::ones({4});
};

TEST(Callable, ReturnsAStruct) {
  Vae vae;
  const Tensor x = binade::randn({5, 12});
  const auto [image, mean, log_variance] = vae(x);
  EXPECT_EQ(image.sizes(), x.sizes());
  EXPECT_EQ(mean.sizes(), (binade::Dims{5, 2}));
  (binade::mse_loss(image, x) + binade::mean(log_variance * log_variance)).backward();
  for (const auto& [name, parameter] : vae.named_parameters()) {
    EXPECT_TRUE(parameter.grad().defined()) << name;
  }
  EXPECT_EQ(vae.named_parameters().size(), 8u);
  expect_part(error_of([&] { vae(binade::ones({5, 11})); }), "(in module encoder)");
  nn::Module& base = vae;
  expect_part(error_of([&] { base(x); }), "Vae, whose forward() takes other inputs");
  expect_part(error_of([&] { base.forward(x); }), "call it by its own type");
}

TEST(Callable, TakesSeveralInputs) {
  Gated gated;
  const Tensor x = binade::randn({3, 4}), gate = binade::full({4}, 2.0);
  const Tensor plain = gated(x), doubled = gated(x, gate);
  for (int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(doubled.at(i), 2 * plain.at(i));
  }
  nn::Module& base = gated;  // one tensor is enough for it
  EXPECT_EQ(base(x).at(5), plain.at(5));
  static_assert(!std::is_invocable_v<Gated&, int>);
  static_assert(!std::is_invocable_v<nn::Module&, Tensor, Tensor>);

  Pairs pairs;
  EXPECT_EQ(pairs(std::vector<Tensor>{x, gate}, 0.5).size(), 2u);
  EXPECT_EQ(std::get<1>(pairs(x, 7)), 7);
  nn::Module& other = pairs;
  expect_part(error_of([&] { other(x); }), "Pairs");
}

TEST(Callable, RunsInASequentialUnderItsPathAndPrecision) {
  struct Probe : nn::Callable<Probe> {
    using Callable::Callable;
    Tensor forward(const Tensor& x, double bias = 0) {
      seen = fc(x);
      where = binade::label_text(binade::detail::thread_state.label);
      return seen + bias;
    }
    nn::Linear fc{*this, "fc", {.in = 4, .out = 4}};
    Tensor seen;
    std::string where;
  };
  nn::Sequential net;
  net.add<nn::Linear>({.in = 4, .out = 4});
  auto& probe = net.add<Probe>();
  auto& gated = net.add<Gated>();
  net.add<nn::Lambda>([](const Tensor& x) { return x * 3; });
  net.to({}, binade::Precision::mixed(binade::DType::f16));
  const Tensor y = net(binade::randn({2, 4}));
  EXPECT_EQ(probe.where, "1");
  EXPECT_EQ(probe.seen.dtype(), binade::DType::f16);
  EXPECT_EQ(gated(binade::randn({2, 4}), binade::ones({4})).sizes(), y.sizes());
  EXPECT_EQ(names_of(net.named_parameters())[2], "1.fc.weight");

  nn::Sequential broken;
  broken.add<Pairs>();
  expect_part(error_of([&] { broken(binade::ones({1, 4})); }), "(in module 0)");
}

TEST(Callable, WarnsWhenItIsNotRegistered) {
  struct Outer : nn::Callable<Outer> {
    explicit Outer(Gated& gated) : gated(gated) {}
    Tensor forward(const Tensor& x, const Tensor& gate) { return gated(fc(x), gate); }
    nn::Linear fc{*this, "fc", {.in = 4, .out = 4}};
    Gated& gated;
  };
  Gated forgotten;
  Outer outer(forgotten);
  std::vector<std::string> texts;
  const auto before =
      binade::set_warning_handler([&](const std::string& text) { texts.push_back(text); });
  outer(binade::ones({1, 4}), binade::ones({4}));
  binade::set_warning_handler(before);
  ASSERT_EQ(texts.size(), 1u);
  expect_part(texts[0], "Gated (fc.weight [4, 4], fc.bias [4]) runs in the forward of");
}

TEST(Registration, OldAndNewGiveTheSameState) {
  struct New : nn::Module {
    Tensor forward(const Tensor& x) override { return fc(x) * scale; }
    nn::Linear fc{*this, "fc", {.in = 4, .out = 4}};
    nn::Parameter scale{*this, "scale", binade::ones({4})};
  };
  Old old;
  New fresh;
  EXPECT_EQ(names_of(fresh.state()), (std::vector<std::string>{"scale", "fc.weight", "fc.bias"}));
  fresh.load_state(old.state());
  const Tensor x = binade::randn({2, 4});
  EXPECT_EQ(fresh(x).at(3), old(x).at(3));
  binade::sum(fresh(x)).backward();
  EXPECT_TRUE(fresh.scale.grad().defined());
}

TEST(Registration, EveryKindOfMember) {
  struct All : nn::Module {
    nn::Conv2d conv{*this, "conv", {.in = 1, .out = 2, .kernel = 3}};
    nn::BatchNorm2d bn{*this, "bn", {.channels = 2}};
    nn::ReLU relu{*this, "relu"};
    nn::Dropout dropout{*this, "dropout", {.p = 0.1}};
    nn::LSTM lstm{*this, "lstm", {.input = 2, .hidden = 3}};
    nn::RNN rnn{*this, "rnn", {.input = 2, .hidden = 3}, nn::Nonlinearity::relu};
    nn::Sequential head{*this, "head"};
    nn::Buffer steps{*this, "steps", binade::zeros({1}, binade::DType::i64)};
    nn::Parameter gain{*this, "gain", binade::ones({2}), {.norm_or_bias = true}};
    Gated gated{*this, "gated"};
    nn::Lambda twice{*this, "twice", [](const Tensor& x) { return x + x; }};
    nn::Embedding words{*this, "words", {.count = 5, .width = 2}};
    nn::EmbeddingBag bags{*this, "bags", {.count = 5, .width = 2}};
  };
  All all;
  all.head.add<nn::Linear>({.in = 2, .out = 2});
  const std::vector<std::string> buffers = names_of(all.named_buffers());
  EXPECT_EQ(buffers, (std::vector<std::string>{"steps", "bn.running_mean", "bn.running_var"}));
  expect_part(all.describe(), "gated.fc.weight");
  expect_part(all.describe(), "lstm.weight_ih_l0");
  all.eval();
  EXPECT_FALSE(all.dropout.is_training() || all.head.is_training() || all.twice.is_training());
  EXPECT_EQ(all.twice(binade::ones({1})).item(), 2);
  struct Twice : nn::Module {
    nn::Linear a{*this, "fc", {.in = 1, .out = 1}}, b{*this, "fc", {.in = 1, .out = 1}};
  };
  expect_part(error_of([] { Twice(); }), "'fc' is used twice");
}

TEST(Registration, ADestroyedChildLeavesItsParent) {
  struct Throws : nn::Module {
    explicit Throws(nn::Module& parent) : Module(parent, "inner") { binade::check(false, "no"); }
    nn::Linear fc{*this, "fc", {.in = 1, .out = 1}};
  };
  Gated net;
  EXPECT_THROW(Throws{net}, Error);
  EXPECT_EQ(net.named_parameters().size(), 2u);
  {
    nn::Linear extra{net, "extra", {.in = 1, .out = 1}};
    EXPECT_EQ(net.named_parameters().size(), 4u);
  }
  EXPECT_EQ(net.named_parameters().size(), 2u);
  auto parent = std::make_unique<Gated>();
  Gated child(*parent, "child");
  parent.reset();  // the child lives on alone
  EXPECT_EQ(names_of(child.named_parameters())[0], "fc.weight");
  EXPECT_EQ(child(binade::ones({1, 4})).numel(), 4);
}

TEST(List, HoldsModulesUnderTheirIndex) {
  struct Deep : nn::Module {
    Deep() {
      for (int i = 0; i < 3; ++i) {
        layers.emplace({.in = 4, .out = 4});
        gates.emplace();
      }
    }
    Tensor forward(const Tensor& x) override {
      Tensor y = x;
      for (nn::Linear& layer : layers) {
        y = binade::relu(layer(y));
      }
      return gates[2](y, binade::ones({4}));
    }
    nn::List<nn::Linear> layers{*this, "layers"};
    nn::List<Gated> gates{*this, "gates"};
  };
  Deep deep;
  EXPECT_EQ(deep.layers.size(), 3u);
  const std::vector<std::string> names = names_of(deep.named_parameters());
  EXPECT_EQ(names[2], "layers.1.weight");
  EXPECT_EQ(names.back(), "gates.2.fc.bias");
  EXPECT_EQ(deep(binade::ones({2, 4})).sizes(), (binade::Dims{2, 4}));
  expect_part(error_of([&] { deep(binade::ones({2, 5})); }), "(in module layers.0)");
  expect_part(error_of([&] { deep.layers[3]; }), "got index 3 of 3");
  expect_part(error_of([&] { deep.layers(binade::ones({1})); }), "List");
  nn::List<nn::Module> mixed;
  mixed.add(std::make_unique<nn::ReLU>());
  mixed.add(std::make_unique<Gated>());
  EXPECT_EQ(mixed[0](binade::full({1}, -1.0)).item(), 0);
}

TEST(Dict, HoldsModulesUnderNames) {
  struct Heads : nn::Module {
    Heads() {
      heads.emplace("year", {.in = 4, .out = 1});
      heads.emplace("age", {.in = 4, .out = 2});
    }
    Tensor forward(const Tensor& x) override { return heads["age"](x); }
    nn::Dict<nn::Linear> heads{*this, "heads"};
  };
  Heads model;
  EXPECT_EQ(names_of(model.named_parameters())[3], "heads.age.bias");
  EXPECT_EQ(model.heads.keys(), (std::vector<std::string>{"year", "age"}));
  EXPECT_EQ(model(binade::ones({3, 4})).sizes(), (binade::Dims{3, 2}));
  EXPECT_TRUE(model.heads.contains("age") && !model.heads.contains("ages"));
  expect_part(error_of([&] { model.heads["ages"]; }),
              "got the key 'ages', expected one of 'year', 'age'");
  expect_part(error_of([&] { model.heads.emplace("age", {.in = 4, .out = 1}); }), "'age'");
  EXPECT_EQ(model.heads.size(), 2u);
  nn::Dict<nn::Module> mixed;
  mixed.add("relu", std::make_unique<nn::ReLU>());
  EXPECT_EQ(mixed["relu"](binade::full({1}, -1.0)).item(), 0);
}

// -Wextra warns of most of these while they are compiled.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
TEST(Options, WhatIsLeftOutIsNamed) {
  using namespace binade::nn;
  const std::vector<std::pair<std::string, std::function<void()>>> cases = {
      {"Linear: got out = 0, expected a positive number; set the option out",
       [] { Linear({.in = 2}); }},
      {"Linear: got in = -3, expected a positive number", [] { Linear({.in = -3, .out = 2}); }},
      {"Embedding: got width = 0", [] { Embedding({.count = 2}); }},
      {"EmbeddingBag: got count = 0", [] { EmbeddingBag({.width = 2}); }},
      {"MultiheadAttention: got heads = 0", [] { MultiheadAttention({.embed = 4}); }},
      {"Conv2d: got out = 0", [] { Conv2d({.in = 4, .out = 0, .kernel = 1}); }},
      {"Conv1d: got kernel = 0", [] { Conv1d({.in = 4, .out = 2}); }},
      {"PixelShuffle: got upscale_factor = 0", [] { PixelShuffle({}); }},
      {"PixelUnshuffle: got downscale_factor = 0", [] { PixelUnshuffle({}); }},
      {"Unfold: got kernel = 0",
       [] {
         Unfold({.kernel = {3, 0}});
       }},
      {"Fold: got output = 0", [] { Fold({.output = 0, .kernel = 1}); }},
      {"BatchNorm2d: got channels = 0", [] { BatchNorm2d({}); }},
      {"GroupNorm: got groups = 0", [] { GroupNorm({.channels = 4}); }},
      {"LayerNorm: got normalized_shape = []", [] { LayerNorm({}); }},
      {"LSTM: got hidden = 0", [] { LSTM({.input = 3}); }},
      {"MaxPool1d: got kernel = 0", [] { MaxPool1d({}); }},
      {"AvgPool2d: got stride = -1", [] { AvgPool2d({.kernel = 2, .stride = -1}); }},
      {"AdaptiveAvgPool2d: got output = 0", [] { AdaptiveAvgPool2d({.output = 0}); }}};
  for (const auto& [message, make] : cases) {
    expect_part(error_of(make), message);
  }
}
#pragma GCC diagnostic pop

}  // namespace
}  // namespace own_module_test
