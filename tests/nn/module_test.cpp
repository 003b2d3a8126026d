// Names, tying, freezing, conversion, state and errors of modules.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/models.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <tests/support/error_of.h>

namespace binade::nn::module_test {
namespace {

void expect_part(const std::string& whole, const std::string& part) {
  EXPECT_NE(whole.find(part), std::string::npos) << whole;
}

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    names.push_back(name);
  }
  return names;
}

class Net : public Module {
 public:
  Net() {
    register_module("conv", conv);
    register_module("bn", bn);
    register_module("fc", fc);
  }
  Tensor forward(const Tensor& x) override { return fc(mean(relu(bn(conv(x))), {2, 3})); }

  Conv2d conv{{.in = 2, .out = 6, .kernel = 3, .padding = 1}};
  BatchNorm2d bn{{.channels = 6}};
  Linear fc{{.in = 6, .out = 3}};
};

class Tied : public Module {
 public:
  Tied() {
    register_module("encoder", encoder);
    register_module("decoder", decoder);
    decoder.weight = encoder.weight;
  }
  Tensor forward(const Tensor& x) override { return decoder(encoder(x)); }

  Linear encoder{{.in = 4, .out = 4}};
  Linear decoder{{.in = 4, .out = 4}};
};

TEST(Module, NamesArePathsInOrder) {
  Net net;
  const std::vector<std::string> parameters = {"conv.weight", "conv.bias", "bn.weight",
                                               "bn.bias",     "fc.weight", "fc.bias"};
  EXPECT_EQ(names_of(net.named_parameters()), parameters);
  EXPECT_EQ(names_of(net.named_buffers()),
            (std::vector<std::string>{"bn.running_mean", "bn.running_var"}));
  EXPECT_EQ(net.parameter_count(), 6 * 2 * 9 + 6 + 12 + 18 + 3);
  std::vector<std::string> listed;
  for (const binade::Parameter& parameter : net.parameters()) {
    listed.push_back(parameter.name);
    EXPECT_EQ(parameter.norm_or_bias,
              parameter.name != "conv.weight" && parameter.name != "fc.weight");
  }
  EXPECT_EQ(listed, parameters);
  EXPECT_EQ(net.parameters().arena(), net.parameters().arena());
  EXPECT_EQ(net.fc.parameters().size(), 2u);
  EXPECT_EQ(net.fc.parameters()[0].name, "fc.weight");
  EXPECT_EQ(names_of(net.fc.named_parameters())[0], "weight");
  EXPECT_EQ(
      names_of(net.state()),
      (std::vector<std::string>{"conv.weight", "conv.bias", "bn.weight", "bn.bias",
                                "bn.running_mean", "bn.running_var", "fc.weight", "fc.bias"}));
}

TEST(Module, RegistrationErrors) {
  class Bad : public Module {
   public:
    using Module::register_buffer;
    using Module::register_module;
    using Module::register_parameter;
    Tensor forward(const Tensor& x) override { return x; }
  };
  Bad bad, child, other;
  Tensor w = ones({2}), count = zeros({1}, DType::i64), nothing;
  bad.register_parameter("w", w);
  EXPECT_TRUE(w.requires_grad());
  EXPECT_THROW(bad.register_parameter("w", w), Error);
  EXPECT_THROW(bad.register_buffer("w", w), Error);
  EXPECT_THROW(bad.register_parameter("a.b", w), Error);
  EXPECT_THROW(bad.register_parameter("", w), Error);
  EXPECT_THROW(bad.register_parameter("n", nothing), Error);
  EXPECT_THROW(bad.register_parameter("n", count), Error);
  EXPECT_THROW(bad.register_parameter("n", w, {.channels_last = true}), Error);
  bad.register_buffer("count", count);
  bad.register_module("child", child);
  EXPECT_THROW(other.register_module("child", child), Error);
  EXPECT_THROW(other.register_module("self", other), Error);
  EXPECT_EQ(bad.parameters().size(), 1u);
}

TEST(Module, ItsParametersAreNoVariables) {
  Linear linear({.in = 2, .out = 2});
  expect_part(error_of([&] { ParameterList::of(linear.weight); }), "take those parameters");
}

TEST(Module, TiedParametersAreOne) {
  Tied tied;
  EXPECT_EQ(names_of(tied.named_parameters()),
            (std::vector<std::string>{"encoder.weight", "encoder.bias", "decoder.bias"}));
  for (DType dtype : {DType::f32, DType::f16}) {
    tied.to({}, dtype == DType::f32 ? Precision::full() : Precision::mixed(dtype));
    EXPECT_EQ(tied.parameters().size(), 3u);
    EXPECT_EQ(tied.encoder.weight.handle().get(), tied.decoder.weight.handle().get());
    EXPECT_EQ(tied.decoder.parameters().size(), 2u);
    EXPECT_EQ(tied.decoder.weight.dtype(), dtype);
  }
  tied.to({});
  sum(tied(ones({1, 4}))).backward();
  EXPECT_EQ(tied.encoder.weight.grad().view().data, tied.decoder.weight.grad().view().data);
  expect_part(tied.describe(), "also decoder.weight");

  Net broken;
  broken.conv.bias = make_view(broken.bn.bias, {6}, {1});
  expect_part(error_of([&] { broken.parameters(); }), "different views of the same memory");
}

TEST(Module, FrozenParametersGetNoGradient) {
  for (bool build_first : {false, true}) {
    Net net;
    if (build_first) {
      net.parameters();
    }
    net.freeze("conv");
    net.fc.freeze("bias");
    const ParameterList list = net.parameters();
    EXPECT_EQ(list.filter([](const binade::Parameter& p) { return p.trainable; }).size(), 3u);
    sum(net(randn({2, 2, 4, 4}))).backward();
    EXPECT_FALSE(net.conv.weight.requires_grad());
    EXPECT_FALSE(net.fc.bias.requires_grad());
    EXPECT_TRUE(net.fc.weight.grad().defined());
    expect_part(net.describe(), "frozen");
    net.unfreeze();
    sum(net(randn({2, 2, 4, 4}))).backward();
    EXPECT_TRUE(net.conv.weight.grad().defined());
    EXPECT_EQ(net.parameters().arena(), list.arena());
    net.freeze("fc");
    net.to({}, Precision::mixed(DType::f16));
    EXPECT_FALSE(net.fc.weight.requires_grad());
    net.unfreeze("fc.weight");
    EXPECT_TRUE(net.fc.weight.requires_grad());
    EXPECT_EQ(net.fc.weight.dtype(), DType::f16);
    EXPECT_FALSE(net.fc.bias.requires_grad());
    expect_part(error_of([&] { net.freeze("con"); }), "no parameter is named 'con'");
  }
  Tied tied;
  tied.decoder.freeze("weight");
  EXPECT_FALSE(tied.encoder.weight.requires_grad());
}

TEST(Module, FreezingDropsAPendingGradient) {
  Net net;
  const ParameterList list = net.parameters();
  sum(net(randn({2, 2, 4, 4}))).backward();
  net.freeze();
  for (const binade::Parameter& parameter : list) {
    EXPECT_FALSE(parameter.leaf().has_grad) << parameter.name;
  }
}

TEST(Module, FreezingBetweenForwardAndBackwardDropsTheGradient) {
  Net net;
  const ParameterList list = net.parameters();
  const Tensor loss = sum(net(randn({2, 2, 4, 4})));
  net.freeze("conv");
  loss.backward();
  for (const binade::Parameter& parameter : list) {
    EXPECT_EQ(parameter.leaf().has_grad, !parameter.name.starts_with("conv")) << parameter.name;
  }
  net.unfreeze("conv");
  sum(net(randn({2, 2, 4, 4}))).backward();
  EXPECT_TRUE(net.conv.weight.grad().defined());
}

TEST(Module, ToConvertsByPolicy) {
  struct Row {
    Precision precision;
    DType weight, norm;
    bool masters;
  };
  const Row rows[] = {{Precision::full(), DType::f32, DType::f32, false},
                      {Precision::autocast(DType::f16), DType::f32, DType::f32, false},
                      {Precision::mixed(DType::f16), DType::f16, DType::f32, true},
                      {Precision::mixed(DType::bf16), DType::bf16, DType::f32, true},
                      {Precision::half(DType::f16), DType::f16, DType::f16, false}};
  for (const Row& row : rows) {
    Net net;
    net.to({}, row.precision);
    const std::string name = to_string(row.precision);
    EXPECT_EQ(net.conv.weight.dtype(), row.weight) << name;
    EXPECT_EQ(net.conv.bias.dtype(), row.weight) << name;
    EXPECT_EQ(net.bn.weight.dtype(), row.norm) << name;
    EXPECT_EQ(net.bn.running_mean.dtype(), DType::f32) << name;
    EXPECT_TRUE(net.conv.weight.is_channels_last());
    bool masters = false;
    for (const Arena::Segment& segment : net.parameters().arena()->segments()) {
      masters |= segment.masters.defined();
    }
    EXPECT_EQ(masters, row.masters) << name;
    const Tensor y = net(randn({3, 2, 5, 5}));
    EXPECT_EQ(y.dtype(), row.precision == Precision::full() ? DType::f32 : row.precision.low)
        << name;
    cross_entropy(y, zeros({3}, DType::i64)).backward();
    EXPECT_TRUE(net.conv.weight.grad().defined()) << name;
  }
  Net net;
  net.to(DType::f64);
  EXPECT_EQ(net(randn({1, 2, 4, 4}, DType::f64)).dtype(), DType::f64);
  EXPECT_EQ(net.bn.running_var.dtype(), DType::f64);
  EXPECT_THROW(net.to(DType::f16), Error);
}

TEST(Module, ToAndBackKeepsValuesThroughMasters) {
  Net net;
  const Tensor before = contiguous(net.conv.weight.detach());
  net.to({}, Precision::mixed(DType::bf16));
  EXPECT_NE(net.conv.weight.at(0), before.at(0));
  net.to({});
  for (int64_t i = 0; i < before.numel(); ++i) {
    EXPECT_EQ(net.conv.weight.at(i), before.at(i));
  }
  net.parameters().arena()->optimizers = 1;
  expect_part(error_of([&] { net.to({}); }), "move the model before making the optimizer");
  net.fc.weight = ones({3, 6});
  EXPECT_THROW(net.parameters(), Error);
}

TEST(Module, AReplacedParameterIsTakenIn) {
  Net net;
  const auto old = net.parameters().arena();
  net.fc.weight = ones({3, 6});
  const ParameterList list = net.parameters();
  EXPECT_NE(list.arena(), old);
  EXPECT_TRUE(net.fc.weight.requires_grad());
  EXPECT_EQ(list[4].value.at(5), 1);
}

TEST(Module, StateRoundTrip) {
  manual_seed(1);
  Net net;
  net(randn({4, 2, 5, 5}));
  manual_seed(2);
  Net same, low;
  low.to({}, Precision::mixed(DType::f16));
  same.load_state(net.state());
  low.load_state(net.state());
  const NamedTensors a = net.state(), b = same.state(), c = low.state();
  for (size_t i = 0; i < a.size(); ++i) {
    for (int64_t k = 0; k < a[i].second.numel(); ++k) {
      ASSERT_EQ(a[i].second.at(k), b[i].second.at(k)) << a[i].first;
      ASSERT_NEAR(a[i].second.at(k), c[i].second.at(k), 1e-3) << a[i].first;
    }
  }
  low.to({});  // through the masters, which had the f32 values
  for (int64_t k = 0; k < net.fc.weight.numel(); ++k) {
    EXPECT_EQ(low.fc.weight.at(k), net.fc.weight.at(k));
  }
  EXPECT_TRUE(same.fc.weight.requires_grad());
}

TEST(Module, LoadStateListsEverythingAndChangesNothing) {
  Net net;
  NamedTensors state = net.state();
  const double before = net.conv.weight.at(0);
  state[0].second = ones(state[0].second.sizes());
  state[1].first = "conv.offset";
  state.back().second = ones({4});
  state.emplace_back("bn.num_batches_tracked", zeros({}, DType::i64));
  const std::string error = error_of([&] { net.load_state(state); });
  expect_part(error, "1 missing: conv.bias");
  expect_part(error, "1 unexpected: conv.offset");
  expect_part(error, "fc.bias has [4], expected [3]");
  EXPECT_EQ(error.find("num_batches_tracked"), std::string::npos);
  EXPECT_EQ(net.conv.weight.at(0), before);
  state = net.state();
  state.push_back(state[0]);
  expect_part(error_of([&] { net.load_state(state); }), "given twice: conv.weight");
  state = net.state();
  state[0].second = zeros(state[0].second.sizes(), DType::i64);
  expect_part(error_of([&] { net.load_state(state); }), "dtype i64");

  Tied tied;
  NamedTensors of_tied = tied.state();
  of_tied[0].first = "decoder.weight";  // PyTorch may keep either name, or both
  EXPECT_NO_THROW(tied.load_state(of_tied));
  of_tied.emplace_back("encoder.weight", of_tied[0].second);
  EXPECT_NO_THROW(tied.load_state(of_tied));
}

TEST(Module, ErrorsNameTheModule) {
  Net net;
  const std::string forward = error_of([&] { net(ones({1, 5, 4, 4})); });
  expect_part(forward, "(in module conv)");
  EXPECT_EQ(forward.find("(in module"), forward.rfind("(in module"));
  EXPECT_THROW(net(Tensor()), Error);
}

TEST(Module, TrainAndEval) {
  Net net;
  EXPECT_TRUE(net.bn.is_training());
  net.eval();
  EXPECT_FALSE(net.is_training() || net.bn.is_training());
  net(randn({2, 2, 3, 3}));
  EXPECT_EQ(net.bn.running_var.at(0), 1);
  net.train();
  net(randn({2, 2, 3, 3}));
  EXPECT_NE(net.bn.running_var.at(0), 1);
}

TEST(Module, DescribeIsATable) {
  Net net;
  const std::string table = net.describe();
  expect_part(table, "conv.weight      [6, 2, 3, 3]  f32         108\n");
  expect_part(table, "bn.running_mean  [6]           f32           6  buffer\n");
  expect_part(table, "147 parameters, 147 of them trained\n");
}

}  // namespace
}  // namespace binade::nn::module_test
