// Tests delayed scales: each call has its own history, evaluations do not change it, recomputed
// functions use theirs once, and histories are saved and restored.
#include <binade/core/autograd/recompute.h>
#include <binade/core/ops.h>
#include <binade/core/ops/format.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/error_of.h"

namespace binade::delayed_scales_test {
namespace {

Precision delayed_precision(const char* scheme = "e4m3fn/delayed=4",
                            const char* of_weights = nullptr) {
  return with_formats(Precision::full(),
                      {.weights = format_scheme(of_weights ? of_weights : scheme),
                       .activations = format_scheme(scheme),
                       .gradients = format_scheme(scheme)});
}

std::map<std::string, Tensor> histories_of(const Precision& precision) {
  const NamedTensors all = precision.rules->formats()->histories();
  return {all.begin(), all.end()};
}

bool equal_histories(const Precision& a, const Precision& b) {
  const NamedTensors left = a.rules->formats()->histories(),
                     right = b.rules->formats()->histories();
  bool same = left.size() == right.size();
  for (size_t i = 0; same && i < left.size(); ++i) {
    same = left[i].first == right[i].first && left[i].second.sizes() == right[i].second.sizes() &&
           norm(sub(left[i].second, right[i].second)).item() == 0;
  }
  return same;
}

// Two products in one scope: one is small, the other a million times as large.
struct TwoCalls {
  Tensor small = mul(randn({3, 7}), 1e-3), large = mul(randn({3, 7}), 1e3);
  Tensor w = randn({5, 7}), v = randn({5, 7}), dy = randn({3, 5});

  TwoCalls() {
    for (Tensor* t : {&w, &v}) {
      t->require_grad();
    }
  }
  Tensor forward(const Precision& precision) const {
    const PrecisionScope scope(precision);
    const Tensor first = linear(small, w);
    return add(mul(first, 1e3), linear(large, v));
  }
  void step(const Precision& precision) const { backward(forward(precision), dy); }
};

TEST(DelayedScales, EachCallHasItsOwnHistory) {
  manual_seed(11);
  const TwoCalls calls;
  const Precision precision = delayed_precision();
  for (int i = 0; i < 3; ++i) {
    calls.step(precision);
  }
  const auto histories = histories_of(precision);
  std::set<std::string> names;
  for (const auto& [name, largest] : histories) {
    names.insert(name);
    EXPECT_EQ(largest.numel(), 3) << name;  // one use per step
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"/linear/0/input0", "/linear/0/input1", "/linear/0/output0",
                                   "/linear/1/input0", "/linear/1/input1", "/linear/1/output0"}));
  EXPECT_EQ(amax(histories.at("/linear/0/input0")).item(), amax(abs(calls.small)).item());
  EXPECT_EQ(amax(histories.at("/linear/1/input0")).item(), amax(abs(calls.large)).item());
  // With a shared history, the small input would be rounded at the scale of the large one.
  const NoGradGuard guard;
  const Tensor y = calls.forward(precision);
  const auto rounded = [&](const Tensor& x) {
    return round_to_format(x, format_scheme("e4m3fn/tensor"));
  };
  const Tensor want = add(mul(linear(rounded(calls.small), rounded(calls.w)), 1e3),
                          linear(rounded(calls.large), rounded(calls.v)));
  EXPECT_LT(norm(sub(y, want)).item(), 1e-6 * norm(want).item());
}

TEST(DelayedScales, NumbersBeginAnewWithEachScopeAndAfterEachBackward) {
  manual_seed(12);
  const TwoCalls calls;
  const Precision in_loop = delayed_precision(), around = delayed_precision();
  for (int i = 0; i < 2; ++i) {
    calls.step(in_loop);
  }
  {
    const PrecisionScope scope(around);
    for (int i = 0; i < 2; ++i) {
      const Tensor first = linear(calls.small, calls.w);
      backward(add(mul(first, 1e3), linear(calls.large, calls.v)), calls.dy);
    }
  }
  EXPECT_EQ(histories_of(in_loop).size(), 6U);
  EXPECT_TRUE(equal_histories(in_loop, around));
}

TEST(DelayedScales, AnEvaluationChangesNoHistory) {
  manual_seed(13);
  const TwoCalls calls;
  const Precision evaluated = delayed_precision(), trained = delayed_precision();
  for (int i = 0; i < 3; ++i) {
    calls.step(trained);
    calls.step(evaluated);
    const NoGradGuard guard;
    const PrecisionScope scope(evaluated);
    (void)linear(mul(calls.large, 100), calls.v);
  }
  EXPECT_TRUE(equal_histories(evaluated, trained));
  // Before the first use, an evaluation computes the scale of each tensor.
  const NoGradGuard guard;
  const Precision fresh = delayed_precision();
  const Precision current = with_formats(
      Precision::full(),
      {.weights = format_scheme("e4m3fn/tensor"), .activations = format_scheme("e4m3fn/tensor")});
  EXPECT_EQ(norm(sub(calls.forward(fresh), calls.forward(current))).item(), 0);
  EXPECT_TRUE(histories_of(fresh).empty());
}

TEST(DelayedScales, ARecomputedFunctionUsesEachHistoryOnce) {
  manual_seed(14);
  const TwoCalls calls;
  const Precision plain = delayed_precision("e4m3fn/delayed=4", "e2m1/delayed=4");
  const Precision again = with_new_histories(plain);
  std::vector<Tensor> results, gradients;
  for (const Precision* precision : {&plain, &again}) {
    calls.w.zero_grad();
    calls.v.zero_grad();
    Tensor x = mul(calls.large, 1);
    x.require_grad();
    for (int i = 0; i < 3; ++i) {
      Tensor y;
      {
        const PrecisionScope scope(*precision);
        const auto inner = [&](const Tensor& h) { return linear(h, calls.v); };
        // The function runs after a call of the same op and contains a recomputed function itself.
        const auto function = [&, inner](const Tensor& h) {
          const Tensor a = linear(h, calls.w);
          return add(a, precision == &again ? recompute(inner, h) : inner(h));
        };
        const Tensor before = linear(x, calls.w);
        const Tensor h = mul(x, 1 + i);
        y = add(before, precision == &again ? recompute(function, h) : function(h));
        y = add(y, linear(x, calls.v));
      }
      backward(y, calls.dy);
      results.push_back(y.detach());
    }
    gradients.push_back(calls.w.grad().clone());
    gradients.push_back(calls.v.grad().clone());
    gradients.push_back(x.grad().clone());
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(norm(sub(results[i], results[3 + i])).item(), 0);
    EXPECT_LE(norm(sub(gradients[i], gradients[3 + i])).item(), 1e-6 * norm(gradients[i]).item());
  }
  EXPECT_EQ(histories_of(plain).size(), 12U);
  EXPECT_TRUE(equal_histories(plain, again));
}

TEST(DelayedScales, AnOverflowDoesNotForgetTheScale) {
  const Precision precision = delayed_precision();
  const auto product = [&](double value) {
    const PrecisionScope scope(precision);
    return matmul(full({1, 2}, value), full({2, 1}, 1.0)).item();
  };
  (void)product(1000);
  (void)product(INFINITY);
  EXPECT_NEAR(product(1000), 2000, 1);
}

TEST(DelayedScales, HistoriesAreRestored) {
  manual_seed(15);
  const TwoCalls calls;
  const Precision through = delayed_precision(), stopped = delayed_precision();
  for (int i = 0; i < 6; ++i) {  // more than the four entries of a history
    calls.step(through);
    calls.step(stopped);
  }
  const Precision resumed = with_new_histories(stopped);
  EXPECT_TRUE(histories_of(resumed).empty());
  resumed.rules->formats()->set_histories(stopped.rules->formats()->histories());
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(equal_histories(through, resumed));
    calls.step(through);
    calls.step(resumed);
    const NoGradGuard guard;
    EXPECT_EQ(norm(sub(calls.forward(through), calls.forward(resumed))).item(), 0);
  }
}

TEST(DelayedScales, AShorterHistoryKeepsTheNewest) {
  const Precision precision = delayed_precision("e4m3fn/delayed=2");
  NamedTensors given{{"/matmul/0/input0", arange(1, 6, 1, DType::f32)}};
  precision.rules->formats()->set_histories(given);
  {
    const PrecisionScope scope(precision);
    (void)matmul(full({1, 2}, 7.0), full({2, 1}, 1.0));
  }
  const Tensor kept = histories_of(precision).at("/matmul/0/input0");
  EXPECT_EQ(kept.sizes(), Dims{2});
  EXPECT_EQ(kept.data<float>()[0], 5);
  EXPECT_EQ(kept.data<float>()[1], 7);
}

TEST(DelayedScales, OtherNamesAndTensorsAreRefused) {
  const Precision precision = delayed_precision();
  const SimulatedFormats& formats = *precision.rules->formats();
  formats.set_histories({{"a.b/linear/3/output1", ones({2})}});
  for (const char* name : {"linear/0/input0", "/linear/0/weight0", "/linear/-1/input0",
                           "/linear/0/input", "//0/input0", ""}) {
    const std::string error = error_of([&] { formats.set_histories({{name, ones({2})}}); });
    EXPECT_NE(error.find("delayed scales: got '"), std::string::npos) << name;
  }
  EXPECT_THROW(formats.set_histories({{"/linear/0/input0", ones({2}, DType::f64)}}), Error);
  EXPECT_THROW(formats.set_histories({{"/linear/0/input0", ones({0})}}), Error);
  EXPECT_EQ(formats.histories().size(), 1U);
  EXPECT_EQ(formats.histories()[0].first, "a.b/linear/3/output1");
}

}  // namespace
}  // namespace binade::delayed_scales_test
