// Policies on modules: rules by path, what their parameters become, BINADE_PRECISION.
#include <binade/core/ops.h>
#include <binade/core/precision/precision_ledger.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/nn/linear.h>
#include <binade/nn/norm.h>
#include <binade/nn/rnn.h>
#include <binade/nn/sequential.h>
#include <binade/nn/transformer.h>

#include <cstdlib>
#include <map>

#include "tests/core/autograd/autograd_testing.h"

namespace binade::nn::precision_test {
namespace {

constexpr DType f16 = DType::f16, f32 = DType::f32;

struct Block : Module {
  Block() {
    register_module("linear", linear);
    register_module("norm", norm);
  }
  Tensor forward(const Tensor& x) override { return norm(linear(x)); }
  Linear linear{{.in = 4, .out = 4}};
  LayerNorm norm{LayerNormOptions{.normalized_shape = {4}}};
};

struct Net : Module {
  Net() {
    register_module("encoder", encoder);
    register_module("head", head);
  }
  Tensor forward(const Tensor& x) override { return head(encoder(x)); }
  Block encoder;
  Linear head{{.in = 4, .out = 2}};
};

std::map<std::string, DType> dtypes(const Net& net) {
  std::map<std::string, DType> out;
  for (const auto& [name, tensor] : net.named_parameters()) {
    out[name] = tensor.dtype();
  }
  return out;
}

TEST(ModulePrecision, ARuleForAWholeModuleKeepsItsParametersInF32) {
  Net net;
  net.to({}, Precision::mixed(f16).with({{.module = "head"}}));
  EXPECT_EQ(dtypes(net)["encoder.linear.weight"], f16);
  EXPECT_EQ(dtypes(net)["head.weight"], f32);
  EXPECT_EQ(net(ones({1, 4})).dtype(), f32);
  net.to({}, Precision::mixed(f16).with({{.op = "linear", .module = "head"}}));
  EXPECT_EQ(dtypes(net)["head.weight"], f16);
  const Tensor y = net(ones({1, 4}));
  EXPECT_EQ(y.dtype(), f32);
  sum(y).backward();
  EXPECT_EQ(net.head.weight.grad().dtype(), f32);
}

TEST(ModulePrecision, ARuleForAModuleThatIsNotThereIsAnError) {
  Net net;
  const std::string error =
      error_of([&] { net.to({}, Precision::mixed(f16).with({{.module = "encoder.*.norm"}})); });
  EXPECT_HAS(error,
             "precision rule: no module is named 'encoder.*.norm'; the model has encoder, "
             "encoder.linear, encoder.norm, head");
  EXPECT_FALSE(net.precision().has_value());  // nothing was changed
  net.to({}, Precision::mixed(f16).with({{.module = "*.norm"}}));
}

TEST(ModulePrecision, ExplainsEachModule) {
  Net net;
  net.to({}, Precision::mixed(f16).with({{.op_class = OpClass::norm, .module = "encoder"},
                                         {.op = "softmax", .dtype = f16}}));
  const std::string page = net.explain_precision();
  EXPECT_HAS(page, "mixed f16, 2 rules\n");
  EXPECT_HAS(page, "head            10          f16     f32      f16          as given");
  EXPECT_HAS(page, "encoder.norm    8           f32     -        f16");
  EXPECT_HAS(page, "f32 (rule)");
  EXPECT_HAS(page, "rule op softmax: f16\n");
}

// Entries beside forward(), which take masks and start states, run under the module's own policy
// and path too.
TEST(ModulePrecision, EntriesBesideForwardFollowThePolicy) {
  const Precision mixed = Precision::mixed(DType::bf16);
  const Tensor x = randn({5, 2, 4});
  MultiheadAttention attention({.embed = 4, .heads = 2});
  attention.to(Device{}, mixed);
  EXPECT_EQ(attention.attend(x, x, x, {.is_causal = true}).dtype(), DType::bf16);
  TransformerEncoderLayer layer({.embed = 4, .heads = 2, .feedforward = 8});
  layer.to(Device{}, mixed);
  EXPECT_EQ(layer.encode(x, {.is_causal = true}).sizes(), x.sizes());
  GRU gru({.input = 4, .hidden = 3});
  gru.to(Device{}, mixed);
  const RecurrentResult first = gru.run(x);
  EXPECT_EQ(gru.run(x, first.state).output.sizes(), (Dims{5, 2, 3}));
}

TEST(ModulePrecision, ARuleReachesTheAttentionOfAnEncoderLayer) {
  Sequential model;
  auto& layer = model.add_named<TransformerEncoderLayer>(
      "layer", {.embed = 4, .heads = 2, .feedforward = 8, .dropout = 0});
  const NoGradGuard guard;
  const PrecisionLedger ledger;
  const Tensor x = randn({5, 2, 4});
  const auto modules = [&] {
    std::vector<std::string> found;
    for (const LedgerRow& row : ledger.rows()) {
      if (row.op == "scaled_dot_product_attention") {
        found.push_back(row.module);
      }
    }
    return found;
  };
  model(x);
  layer.encode(x, {.is_causal = true});
  EXPECT_EQ(modules(), (std::vector<std::string>{"layer.self_attn"}));
}

TEST(ModulePrecision, TheLedgerFindsLeavesWithoutMasters) {
  Net net;
  net.to({}, Precision::mixed(f16));
  PrecisionLedger ledger;
  net(ones({1, 4}));
  EXPECT_TRUE(ledger.findings().empty()) << ledger.table();
  net.to({}, Precision::half(f16));
  net(ones({1, 4}));
  ASSERT_EQ(ledger.findings().size(), 3u) << ledger.table();
  EXPECT_EQ(ledger.findings()[0].module, "encoder.linear");
}

class Environment : public testing::Test {
 protected:
  void TearDown() override { unsetenv("BINADE_PRECISION"); }
  Net net_;
};

TEST_F(Environment, ChoosesWhereTheProgramLeavesTheDefault) {
  net_.to(Device{});
  EXPECT_EQ(*net_.precision(), Precision::full());
  setenv("BINADE_PRECISION", "fp16", 1);
  net_.to(Device{});
  EXPECT_EQ(*net_.precision(), Precision::mixed(f16));
  EXPECT_TRUE(net_.precision()->from_environment);
  EXPECT_EQ(net_.head.weight.dtype(), f16);
  setenv("BINADE_PRECISION", "autocast-bf16", 1);
  net_.to(Device{});
  EXPECT_EQ(*net_.precision(), Precision::autocast(DType::bf16));
  setenv("BINADE_PRECISION", "fp32", 1);
  net_.to(Device{});
  EXPECT_EQ(*net_.precision(), Precision::full());
}

TEST_F(Environment, AnExplicitPolicyWins) {
  setenv("BINADE_PRECISION", "fp16", 1);
  net_.to({}, Precision::full());
  EXPECT_EQ(net_.head.weight.dtype(), f32);
  EXPECT_FALSE(net_.precision()->from_environment);
  net_.to(DType::f64);
  EXPECT_EQ(net_.head.weight.dtype(), DType::f64);
}

TEST_F(Environment, ABadValueIsOneError) {
  setenv("BINADE_PRECISION", "float16", 1);
  EXPECT_HAS(error_of([&] { net_.to(Device{}); }),
             "BINADE_PRECISION: got 'float16', expected fp32, fp16, bf16");
}

}  // namespace
}  // namespace binade::nn::precision_test
