// Tests precision policies: the dtypes of an op's inputs, rules by op and module, the cast cache.
#include <binade/core/autograd/op.h>
#include <binade/core/autograd/recompute.h>
#include <binade/core/observe/label.h>
#include <binade/core/observe/observer.h>
#include <binade/core/precision/precision_rules.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/core/autograd/autograd_testing.h"
#include "tests/support/temporary_directory.h"

namespace binade::precision_test {
namespace {

constexpr DType f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32;

// Counts casts by outcome.
struct Casts : OpObserver {
  void policy(const PolicyEvent& event) override {
    for (PolicyEvent::Cast cast : event.casts) {
      made += cast == PolicyEvent::Cast::made;
      cached += cast == PolicyEvent::Cast::cached;
    }
    why = to_string(event.decision, event.precision, event.op.op_class);
  }
  int made = 0, cached = 0;
  std::string why;
};

Tensor weight(const Dims& sizes) {
  Tensor w = randn(sizes);
  w.require_grad();
  return w;
}

DType softmax_dtype(const Precision& precision, DType given) {
  const PrecisionScope scope(precision);
  return softmax(ones({2}, given), 0).dtype();
}

TEST(Precision, WhereAWideResultIsStored) {
  EXPECT_EQ(softmax_dtype(Precision::autocast(f16), f16), f32);
  EXPECT_EQ(softmax_dtype(Precision::autocast(f16).with(Store::paper), f16), f16);
  EXPECT_EQ(softmax_dtype(Precision::mixed(f16), f16), f16);
  EXPECT_EQ(softmax_dtype(Precision::mixed(f16).with(Store::apex), f16), f32);
  EXPECT_EQ(softmax_dtype(Precision::half(bf16), f32), bf16);
  EXPECT_EQ(softmax_dtype(Precision::half(bf16).with(Store::apex), bf16), f32);
  EXPECT_EQ(softmax_dtype(Precision::mixed(f16), DType::f64), DType::f64);
}

TEST(Precision, TensorsOfSeveralDtypesAreJoinedInTheWidest) {
  const PrecisionScope scope(Precision::autocast(f16));
  const Tensor narrow = ones({1, 2}, f16), wide = ones({1, 2});
  EXPECT_EQ(cat({narrow, wide}, 0).dtype(), f32);
  EXPECT_EQ(stack({narrow, wide}).dtype(), f32);
  EXPECT_EQ(cat({narrow, narrow}, 0).dtype(), f16);
}

TEST(Precision, NamesOfPolicies) {
  EXPECT_EQ(parse_precision("fp32"), Precision::full());
  EXPECT_EQ(parse_precision("bf16"), Precision::mixed(bf16));
  EXPECT_EQ(parse_precision("autocast-fp16"), Precision::autocast(f16));
  EXPECT_EQ(parse_precision("half-bf16"), Precision::half(bf16));
  for (const char* bad : {"", "fp8", "O1", "mixed", "full-fp16", "fp16 "}) {
    EXPECT_HAS(error_of([&] { parse_precision(bad); }),
               text("precision: got '", bad, "', expected"));
  }
  EXPECT_EQ(to_string(Precision::mixed(f16).with(Store::apex).with({{.op = "exp"}})),
            "mixed f16, apex, 1 rule");
  EXPECT_EQ(Precision::mixed(f16).with(Store::paper), Precision::mixed(f16));
  EXPECT_FALSE(Precision::mixed(f16).with(Store::apex) == Precision::mixed(f16));
}

// rules

TEST(PrecisionRules, PatternsOfModules) {
  const auto fits = [](const char* pattern, const char* path) {
    return matches_module(pattern, path);
  };
  EXPECT_TRUE(fits("encoder", "encoder") && fits("encoder", "encoder.0.norm"));
  EXPECT_FALSE(fits("encoder", "encoder2") || fits("encoder", "decoder.encoder"));
  EXPECT_TRUE(fits("encoder.*.norm", "encoder.0.norm") &&
              fits("encoder.*.norm", "encoder.11.norm"));
  EXPECT_FALSE(fits("encoder.*.norm", "encoder.0.block.norm") ||
               fits("encoder.*.norm", "encoder.0"));
  EXPECT_TRUE(fits("**.norm", "a.b.norm") && fits("**.norm", "norm") && fits("**", "a.b"));
  EXPECT_TRUE(fits("*.norm*", "a.norm1.x") && fits("", "a") && fits("", ""));
  EXPECT_FALSE(fits("**.norm", "a.b") || fits("a", ""));
  EXPECT_TRUE(fits("a.**.b.**.c", "a.x.b.y.b.c.d") && fits("**.a.b", "a.c.a.a.b") &&
              fits("a.**", "a") && fits("**.**", ""));
  EXPECT_FALSE(fits("a.**.b.**.c", "a.x.b.y.b") || fits("**.a.**.b", "b.a") || fits("**.a", ""));
}

// Trying every way in which 20 ** share 60 names would take years.
TEST(PrecisionRules, PatternsOfManyStarsTakeNoTime) {
  std::string pattern, path = "a";
  for (int i = 0; i < 20; ++i) {
    pattern += "**.a*a*.";
    path += ".aaa.aaa.aaa";
  }
  EXPECT_FALSE(matches_module(pattern + "b", path));
  EXPECT_TRUE(matches_module(pattern + "b", path + ".b"));
}

TEST(PrecisionRules, TheLastThatFitsCounts) {
  const Precision precision =
      Precision::mixed(f16).with({{.op_class = OpClass::reduction},
                                  {.op = "s*", .module = "head", .dtype = bf16},
                                  {.op = "sum", .module = "head.out"}});
  const auto dtype = [&](const char* module, bool is_sum) {
    const LabelScope label(intern_label(0, module));
    const PrecisionScope scope(precision);
    const Tensor x = ones({2}, f16);
    return (is_sum ? sum(x) : softmax(x, 0)).dtype();
  };
  EXPECT_EQ(dtype("body", true), f32);
  EXPECT_EQ(dtype("head", true), bf16);
  EXPECT_EQ(dtype("head.out", true), f32);
  EXPECT_EQ(dtype("head.out", false), bf16);
  EXPECT_EQ(dtype("head.out", false), bf16);  // the remembered answer is the same
  const LabelScope label(intern_label(0, "head"));
  const PrecisionScope scope(precision);
  Casts casts;
  const ObserverScope observe(casts);
  sum(ones({2}, f16));
  EXPECT_EQ(casts.why, "rule: op s* in head: bf16");
}

TEST(PrecisionRules, ActUnderFullPrecisionToo) {
  const PrecisionScope scope(Precision::full().with({{.op = "matmul", .dtype = f16}}));
  const Tensor y = matmul(ones({2, 2}), ones({2, 2}));
  EXPECT_EQ(y.dtype(), f16);
  EXPECT_EQ((y + ones({2, 2})).dtype(), f32);
}

TEST(PrecisionRules, GradientsPassTheCasts) {
  Tensor x = weight({3});
  {
    const PrecisionScope scope(Precision::mixed(f16).with({{.op = "square", .dtype = bf16}}));
    const Tensor y = square(x);
    EXPECT_EQ(y.dtype(), bf16);
    sum(y).backward();
  }
  EXPECT_NEAR(x.grad().at(0), 2 * x.at(0), 0.02);
}

TEST(PrecisionRules, MistakesAreNamed) {
  const auto error = [](const PrecisionRule& rule) {
    return error_of([&] { Precision::mixed(f16).with({rule}); });
  };
  EXPECT_HAS(error({.op = "softmaxx"}), "no op is named 'softmaxx'; docs/op_classes.md lists them");
  EXPECT_HAS(error({.op = "reshape"}), "'reshape' moves data only");
  EXPECT_HAS(error({.op_class = OpClass::movement}), "'movement' moves data only");
  EXPECT_HAS(error({.dtype = DType::i64}), "got dtype i64, expected f32, f16 or bf16");
  EXPECT_HAS(error({.module = "a..b"}), "got the module 'a..b', expected names joined by dots");
}

TEST(PrecisionRules, AnOpOfTheUsersOwnIsNamedOnceDeclared) {
  static constexpr Op kOp{"my_ruled_op", OpClass::pointwise};
  const PrecisionRule rule{.op = "my_ruled_op"};
  EXPECT_HAS(error_of([&] { Precision::mixed(f16).with({rule}); }), "declare_op()");
  declare_op(kOp);
  declare_op(kOp);
  const PrecisionScope scope(Precision::mixed(f16).with({rule}));
  const Tensor half = ones({1}, f16);
  auto [x] = kOp.enter(half);
  EXPECT_EQ(x.dtype(), f32);
  static constexpr Op kOther{"softmax", OpClass::loss};
  EXPECT_HAS(error_of([] { declare_op(kOther); }), "softmax is a reduction already, got loss");
}

TEST(PrecisionRules, OpsInsideAnOpOfTheUsersOwnFollowThePolicy) {
  static constexpr Op kOp{"my_projection", OpClass::pointwise};
  std::vector<DType> inside;
  const auto project = [&inside](const Tensor& x_, const Tensor& w_) {
    auto [x, w] = kOp.enter(x_, w_);
    const NoGradGuard plain;
    const Tensor h = matmul(x, w), e = exp(h);
    inside = {h.dtype(), e.dtype()};
    return h;
  };
  const Tensor x = ones({2, 2}), w = ones({2, 2});
  for (const auto& [precision, wanted] :
       {std::pair{Precision::autocast(f16), std::vector{f16, f32}},
        std::pair{Precision::mixed(bf16), std::vector{bf16, bf16}},
        std::pair{Precision::mixed(f16).with({{.op = "matmul"}}), std::vector{f32, f32}}}) {
    const PrecisionScope scope(precision);
    project(x, w);
    EXPECT_EQ(inside, wanted) << to_string(precision);
  }
}

// files

class PrecisionFile : public ::testing::Test {
 protected:
  std::string write(const std::string& content) {
    const std::string path = directory_.path() + "/overrides.json";
    std::ofstream(path) << content;
    return path;
  }
  std::string error(const std::string& content) {
    const std::string path = write(content);
    return error_of([&] { read_precision(path, Precision::mixed(f16)); });
  }
  testing::TemporaryDirectory directory_;
};

TEST_F(PrecisionFile, IsTheSameAsRulesInCode) {
  const Precision read = read_precision(write(R"({"store": "apex", "overrides": [
      {"op": "softmax", "dtype": "fp32"},
      {"class": "norm", "module": "encoder.*", "dtype": "bf16"}]})"),
                                        Precision::mixed(f16));
  EXPECT_EQ(read, Precision::mixed(f16)
                      .with(Store::apex)
                      .with({{.op = "softmax"},
                             {.op_class = OpClass::norm, .module = "encoder.*", .dtype = bf16}}));
  EXPECT_EQ(read_precision(write("{}"), Precision::half(f16)), Precision::half(f16));
}

TEST_F(PrecisionFile, MistakesNameTheFileAndTheEntry) {
  EXPECT_HAS(error("{"), "overrides.json: ");
  EXPECT_HAS(error("[]"), "expected an object with store and overrides");
  EXPECT_HAS(error(R"({"store": "f16"})"), "store: got 'f16', expected paper or apex");
  EXPECT_HAS(error(R"({"rules": []})"),
             "got the key 'rules', expected store, formats, or overrides");
  EXPECT_HAS(error(R"({"overrides": {}})"), "got the key 'overrides'");
  EXPECT_HAS(
      error(R"({"overrides": [{"op": "exp", "dtype": "fp32"}, {"op": "expp", "dtype": "fp32"}]})"),
      "overrides.json: overrides[1]: precision rule: no op is named 'expp'");
  EXPECT_HAS(error(R"({"overrides": [{"op": "exp", "dtype": "fp8"}]})"),
             "overrides[0]: dtype: got 'fp8', expected fp32, fp16 or bf16");
  EXPECT_HAS(error(R"({"overrides": [{"op": "exp"}]})"), "overrides[0]: has no dtype");
  EXPECT_HAS(error(R"({"overrides": [{"class": "norms", "dtype": "fp32"}]})"),
             "op class: got 'norms'");
  EXPECT_HAS(error(R"({"overrides": [{"ops": "exp", "dtype": "fp32"}]})"), "got the key 'ops'");
  EXPECT_HAS(error(R"({"overrides": [{"op": 3, "dtype": "fp32"}]})"),
             "op: got 3, expected a string");
  EXPECT_HAS(error_of([] { read_precision("/nowhere/x.json", Precision::full()); }),
             "/nowhere/x.json: cannot be read");
}

// the cast cache

TEST(CastCache, AParameterIsCastOncePerScope) {
  Tensor w = weight({3, 3});
  Casts casts;
  const ObserverScope observe(casts);
  const Tensor x = ones({2, 3}, f16);
  {
    const PrecisionScope scope(Precision::autocast(f16));
    const Tensor y = matmul(matmul(x, w), w);
    {
      const PrecisionScope inner(Precision::autocast(f16));
      matmul(y, w);
    }
    EXPECT_EQ(casts.made, 1);
    EXPECT_EQ(casts.cached, 2);
    EXPECT_EQ(cast_cache_stats().entries, 1);
    EXPECT_EQ(cast_cache_stats().bytes, 18);
  }
  EXPECT_EQ(cast_cache_stats().entries, 0);
  const PrecisionScope scope(Precision::autocast(f16));
  matmul(x, w);
  EXPECT_EQ(casts.made, 2);
}

// pytorch#112583: a recording forward must not use a cast made without recording.
TEST(CastCache, ACastMadeWithoutRecordingServesARecordingForward) {
  Tensor w = weight({3, 3}), x = ones({2, 3}, f16);
  Casts casts;
  const ObserverScope observe(casts);
  const PrecisionScope scope(Precision::autocast(f16));
  {
    const NoGradGuard no_grad;
    EXPECT_FALSE(matmul(x, w).requires_grad());
  }
  const Tensor y = matmul(x, w);
  EXPECT_EQ(casts.cached, 1);
  ASSERT_TRUE(y.requires_grad());
  sum(y).backward();
  ASSERT_TRUE(w.grad().defined());
  EXPECT_EQ(w.grad().at(0), 2);
  // The second backward: the first graph was freed, and this graph has its own cast.
  sum(matmul(x, w)).backward();
  EXPECT_EQ(w.grad().at(0), 4);
}

TEST(CastCache, AnInPlaceChangeIsSeen) {
  Tensor w = weight({1, 1}), x = ones({1, 1}, f16);
  const PrecisionScope scope(Precision::autocast(f16));
  {
    const NoGradGuard no_grad;
    w.fill_(2);
    EXPECT_EQ(matmul(x, w).item(), 2);
    w.fill_(3);
    EXPECT_EQ(matmul(x, w).item(), 3);
  }
  EXPECT_EQ(matmul(x, w).item(), 3);
}

TEST(CastCache, ACopyThatAnOpWroteToIsNotServed) {
  Tensor w = weight({2}), seen;
  static constexpr Op kOp{"my_entering_op", OpClass::contraction};
  const PrecisionScope scope(Precision::autocast(f16));
  const NoGradGuard no_grad;
  const double before = matmul(ones({2}, f16), w).item();
  auto [entered] = kOp.enter(w);
  entered.detach().fill_(0);
  EXPECT_EQ(matmul(ones({2}, f16), w).item(), before);
}

TEST(CastCache, UsesAddTheirGradientsInF32) {
  Tensor w = weight({1, 1});
  const PrecisionScope scope(Precision::autocast(f16));
  const Tensor big = full({1, 1}, 2048, f16), one = ones({1, 1}, f16);
  (sum(matmul(big, w)) + sum(matmul(one, w))).backward();
  EXPECT_EQ(w.grad().item(), 2049);  // it would be 2048 in f16
}

TEST(CastCache, HoldsNoMoreThanTwiceWhatIsAlive) {
  const PrecisionScope scope(Precision::autocast(f16));
  const Tensor x = ones({1, 4}, f16);
  int64_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    matmul(x, weight({4, 4}));
    most = std::max(most, cast_cache_stats().entries);
  }
  EXPECT_LE(most, 64 + 2);
  matmul(x, ones({4, 4}));  // not a parameter
  const int64_t entries = cast_cache_stats().entries;
  matmul(x, ones({4, 4}));
  EXPECT_EQ(cast_cache_stats().entries, entries);
}

TEST(CastCache, RecomputedFunctionsGetTheSameGradients) {
  Tensor w = weight({3, 3}), x = weight({2, 3});
  const auto gradient = [&](bool again) {
    w.zero_grad();
    const auto f = [&w](const Tensor& x) { return matmul(matmul(x, w), w); };
    {
      const PrecisionScope scope(Precision::autocast(bf16));
      sum(again ? recompute(f, x) : f(x)).backward();
    }
    return values(w.grad());
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

}  // namespace
}  // namespace binade::precision_test
