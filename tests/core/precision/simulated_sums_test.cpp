// Compares simulated sums of ops, selected by rules, with accumulated_matmul(), forward and
// backward. Every op that a rule can name must be simulated or rejected by name.
#include <binade/core/observe/label.h>
#include <binade/core/ops.h>
#include <binade/core/ops/format.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/support/error_of.h"

namespace binade::simulated_sums_test {
namespace {

const char* const kCoarse = "e4m3/chunks=3";  // so coarse that every sum differs from f32

Precision with_sums(const std::string& sums, const std::string& op = "",
                    const std::string& module = "") {
  return with_formats(Precision::full(),
                      {.sums = {{.op = op, .module = module, .sum = accumulation(sums)}}});
}

double distance(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() ? norm(sub(a, b)).item() : INFINITY;
}

struct Ran {
  Tensor y;
  std::vector<Tensor> gradients;
};

Ran run_op(const std::function<Tensor(const std::vector<Tensor>&)>& op,
           const std::vector<Tensor>& values, const Precision& precision) {
  std::vector<Tensor> inputs;
  for (const Tensor& value : values) {
    inputs.push_back(value.clone());
    inputs.back().require_grad();
  }
  Ran ran;
  {
    const PrecisionScope scope(precision);
    ran.y = op(inputs);
  }
  manual_seed(77);
  backward(ran.y, randn(ran.y.sizes()));
  for (const Tensor& input : inputs) {
    ran.gradients.push_back(input.grad());
  }
  return ran;
}

TEST(SimulatedSums, MatmulAndLinearSumAsAsked) {
  manual_seed(21);
  const Tensor a = randn({5, 37}), b = randn({37, 3}), bias = randn({3});
  for (const char* sums : {"f16", "e4m3/chunks=5", "bf16/pairwise", "e5m2/kahan"}) {
    SCOPED_TRACE(sums);
    const Accumulation sum = accumulation(sums);
    const auto by_hand = [&](const std::vector<Tensor>& in) {
      return accumulated_matmul(in[0], in[1], sum);
    };
    const Ran want = run_op(by_hand, {a, b}, Precision::full());
    const Ran product = run_op([](const auto& in) { return matmul(in[0], in[1]); }, {a, b},
                               with_sums(sums, "matmul"));
    EXPECT_EQ(distance(product.y, want.y), 0);
    EXPECT_EQ(distance(product.gradients[0], want.gradients[0]), 0);
    EXPECT_EQ(distance(product.gradients[1], want.gradients[1]), 0);
    const Ran layer =
        run_op([](const auto& in) { return linear(in[0], transpose(in[1], 0, 1), in[2]); },
               {a, b, bias}, with_sums(sums));
    EXPECT_EQ(distance(layer.y, add(want.y.detach(), bias)), 0);
    EXPECT_EQ(distance(layer.gradients[0], want.gradients[0]), 0);
    EXPECT_EQ(distance(layer.gradients[1], want.gradients[1]), 0);
    manual_seed(77);
    const Tensor dy = randn({5, 3});
    EXPECT_EQ(distance(layer.gradients[2], reshape(accumulated_matmul(ones({1, 5}), dy, sum), {3})),
              0);
  }
}

TEST(SimulatedSums, ABatchIsItsMatrices) {
  manual_seed(22);
  const Tensor a = randn({4, 5, 19}), b = randn({4, 19, 3}), one = randn({19, 3});
  const Accumulation sum = accumulation(kCoarse);
  const auto each = [&](const std::vector<Tensor>& in) {
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < 4; ++i) {
      const Tensor right = in[1].dim() == 3 ? select(in[1], 0, i) : in[1];
      parts.push_back(accumulated_matmul(select(in[0], 0, i), right, sum));
    }
    return stack(parts);
  };
  const auto product = [](const std::vector<Tensor>& in) {
    return in[1].dim() == 3 ? bmm(in[0], in[1])
                            : matmul(transpose(transpose(in[0], 0, 1), 0, 1), in[1]);
  };
  for (const Tensor& right : {b, one}) {
    const Ran want = run_op(each, {a, right}, Precision::full());
    const Ran got = run_op(product, {a, right}, with_sums(kCoarse, "matmul"));
    EXPECT_EQ(distance(got.y, want.y), 0);
    EXPECT_EQ(distance(got.gradients[0], want.gradients[0]), 0);
    if (right.dim() == 3) {
      EXPECT_EQ(distance(got.gradients[1], want.gradients[1]), 0);
    }
  }
  // Covers broadcasting over two batches, and an empty sum.
  const Ran wide = run_op([](const auto& in) { return matmul(in[0], in[1]); },
                          {randn({2, 1, 3, 7}), randn({4, 7, 2})}, with_sums("f32"));
  EXPECT_EQ(wide.y.sizes(), (Dims{2, 4, 3, 2}));
  EXPECT_EQ(wide.gradients[0].sizes(), (Dims{2, 1, 3, 7}));
  const PrecisionScope scope(with_sums(kCoarse));
  EXPECT_EQ(norm(matmul(zeros({2, 0}), zeros({0, 3}))).item(), 0);
}

TEST(SimulatedSums, OtherProducts) {
  manual_seed(23);
  const Tensor a = randn({5, 19}), b = randn({19, 3}), start = randn({3});
  const Accumulation sum = accumulation(kCoarse);
  const Tensor product = accumulated_matmul(a, b, sum);
  const PrecisionScope scope(with_sums(kCoarse));
  EXPECT_LT(distance(addmm(start, a, b, {.beta = 0.5, .alpha = -2}),
                     add(mul(product, -2), mul(start, 0.5))),
            1e-5);
  EXPECT_EQ(distance(addmm(full({3}, NAN), a, b, {.beta = 0}), product), 0);
  EXPECT_EQ(
      distance(squeeze(baddbmm(zeros({1, 5, 3}), unsqueeze(a, 0), unsqueeze(b, 0)), 0), product),
      0);
  EXPECT_EQ(distance(einsum("ik,kj->ij", {a, b}), product), 0);
  EXPECT_EQ(distance(feedforward(a, transpose(b, 0, 1), {}, ones({2, 3}), {}),
                     accumulated_matmul(gelu(product), ones({3, 2}), sum)),
            0);
  const Tensor u = full({3}, 1.15), v = full({2}, 1.3);  // one product each, rounded to e4m3
  EXPECT_EQ(outer(u, v).data<float>()[0], 1.5f);
}

TEST(SimulatedSums, SumsAndMeans) {
  const Tensor x = ones({3, 4096, 2});
  const auto value = [&](const char* op, const auto& f) {
    const PrecisionScope scope(with_sums("f16", op));
    return f().template data<float>()[0];
  };
  EXPECT_EQ(value("sum", [&] { return sum(x, {1}); }), 2048);
  EXPECT_EQ(value("sum", [&] { return sum(x); }), 2048);
  EXPECT_EQ(value("mean", [&] { return mean(x, {1}, true); }), 0.5f);
  EXPECT_EQ(value("sum", [&] { return mean(x, {1}); }), 1);  // the rule is for another op
  EXPECT_EQ(value("", [&] { return sum(x, {1}); }), 4096);   // the rule covers contractions only
  const Ran ran = run_op(
      [](const auto& in) {
        return sum(in[0], {0, 2});
      },
      {randn({3, 5, 2})}, with_sums("f16", "sum"));
  manual_seed(77);
  EXPECT_EQ(distance(ran.gradients[0], expand(reshape(randn({5}), {1, 5, 1}), {3, 5, 2})), 0);
  const Tensor half = full({70000}, 2.0, DType::f16);
  const PrecisionScope scope(with_sums("f32", "mean"));
  EXPECT_EQ(mean(half).item(), 2);  // the sum is not rounded to f16
}

TEST(SimulatedSums, RulesChooseOpsAndModules) {
  manual_seed(24);
  const Tensor x = randn({2, 33}), w = randn({33, 33});
  const Tensor rounded = accumulated_matmul(x, transpose(w, 0, 1), accumulation(kCoarse)).detach();
  const auto linear_in = [&](const Precision& precision, const char* module) {
    const PrecisionScope scope(precision);
    const LabelScope label(intern_label(0, module));
    return linear(x, w);
  };
  const Precision in_a = with_sums(kCoarse, "linear", "net.a");
  EXPECT_EQ(distance(linear_in(in_a, "net.a"), rounded), 0);
  EXPECT_EQ(distance(linear_in(in_a, "net.a.inner"), rounded), 0);
  EXPECT_EQ(distance(linear_in(in_a, "net.b"), linear(x, w)), 0);
  EXPECT_EQ(distance(linear_in(with_sums(kCoarse, "matmul"), "net.a"), linear(x, w)), 0);
  // The last matching rule wins.
  const Precision several =
      with_formats(Precision::full(), {.sums = {{.op = "linear", .sum = accumulation(kCoarse)},
                                                {.module = "net.b", .sum = accumulation("f32")}}});
  EXPECT_EQ(distance(linear_in(several, "net.a"), rounded), 0);
  EXPECT_LT(distance(linear_in(several, "net.b"), linear(x, w)), 1e-4);
  several.rules->check_modules({"net", "net.b"});
  EXPECT_NE(error_of([&] {
              several.rules->check_modules({"net", "net.a"});
            }).find("no module is named 'net.b'"),
            std::string::npos);
}

TEST(SimulatedSums, WhatCannotBeSimulatedIsNamed) {
  const auto refused = [](const std::string& op) {
    return error_of([&] { with_sums("f16", op); });
  };
  for (const OpInfo& op : op_classes()) {
    const auto& known = summed_ops();
    const bool simulated = std::find(known.begin(), known.end(), op.name) != known.end();
    const std::string error = refused(op.name);
    EXPECT_EQ(error == "none", simulated) << op.name;
    EXPECT_TRUE(simulated || error.find(op.name) != std::string::npos) << error;
  }
  EXPECT_NE(refused("conv*").find("conv1d"), std::string::npos);
  EXPECT_NE(refused("bmm").find("it is matmul"), std::string::npos);
  EXPECT_NE(refused("einsum").find("made of matmul"), std::string::npos);
  EXPECT_EQ(refused("*mm"), "none");
  EXPECT_NE(error_of([] { with_sums("f16", "linear", "a..b"); }).find("joined by dots"),
            std::string::npos);
  // A rule for every contraction also selects an op that cannot be simulated.
  const PrecisionScope scope(with_sums("f16/chunks=8"));
  const std::string error = error_of([] { conv2d(randn({1, 2, 5, 5}), randn({3, 2, 3, 3}), {}); });
  EXPECT_NE(error.find("conv2d: got f16/chunks=8 sums, which are simulated for linear, matmul"),
            std::string::npos)
      << error;
  const Tensor q = randn({1, 2, 3, 4});
  EXPECT_NE(error_of([&] {
              scaled_dot_product_attention(q, q, q);
            }).find("scaled_dot_product_attention: got f16/chunks=8 sums"),
            std::string::npos);
}

TEST(SimulatedSums, TextsAreReadBack) {
  for (const char* text : {"f16", "bf16/kahan", "f16/chunks=64", "e5m2/pairwise/stochastic",
                           "e4m3fn:overflow=saturate/chunks=1/toward-zero"}) {
    EXPECT_EQ(to_string(accumulation(text)), text);
    EXPECT_EQ(accumulation(to_string(accumulation(text))), accumulation(text));
  }
  EXPECT_EQ(accumulation("f16/chunks").chunk, 64);
  EXPECT_EQ(accumulation("f16/sequential"), accumulation("f16"));
  for (const char* text : {"f17", "f16/", "f16/chunks=0", "f16/chunks=-1", "f16/chunks=x",
                           "f16/tensor", "f16/kahan="}) {
    EXPECT_NE(error_of([&] { accumulation(text); }), "none") << text;
  }
  const Precision precision = precision_of_json(
      R"({"policy": "mixed-bf16", "formats": {"weights": "mxfp8"}, "overrides": [
          {"op": "linear", "module": "enc.*", "sums": "f16/chunks=8", "dtype": "fp16"},
          {"sums": "f32/kahan"}]})");
  const FormatSchemes schemes = formats_of(precision);
  ASSERT_EQ(schemes.sums.size(), 2U);
  EXPECT_EQ(precision.rules->list().size(), 1U);
  EXPECT_EQ(
      to_string(schemes),
      "weights mxfp8, sums f16/chunks=8 of linear in enc.*, sums f32/kahan of every contraction");
  EXPECT_TRUE(precision_of_json(to_json(precision)) == precision);
  EXPECT_FALSE(precision == with_formats(precision, {.weights = format_scheme("mxfp8")}));
  EXPECT_THROW(precision_of_json(R"({"policy": "fp32", "overrides": [{"op": "linear"}]})"), Error);
  EXPECT_THROW(
      precision_of_json(R"({"policy": "fp32", "overrides": [{"class": "norm", "sums": "f16"}]})"),
      Error);
}

}  // namespace
}  // namespace binade::simulated_sums_test
