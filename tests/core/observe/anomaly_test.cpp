#include <binade/core/autograd/autograd.h>
#include <binade/core/autograd/op.h>
#include <binade/core/autograd/recompute.h>
#include <binade/core/observe/anomaly.h>
#include <binade/core/observe/label.h>

#include <limits>

#include "tests/core/autograd/autograd_testing.h"

namespace binade::anomaly_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Anomaly, NamesTheOpTheModuleTheCountAndThePlace) {
  const LabelScope module(intern_label(intern_label(0, "encoder"), "head"));
  Tensor x = leaf({1, 2, 3, -1, 0, 6}, {2, 3});
  const AnomalyGuard guard;
  const std::string error = error_of([&] { relu(log(x * 2.0) * 1.0); });
  EXPECT_EQ(error,
            "anomaly: the result of log, of shape [2, 3], has 1 NaN and 1 infinite values, the "
            "first at [1, 0]; its inputs are finite (in module encoder.head)");
  ASSERT_TRUE(guard.found().has_value());
  EXPECT_EQ(guard.found()->op, "log");
  EXPECT_EQ(guard.found()->module, "encoder.head");
  EXPECT_FALSE(guard.found()->in_backward);
  EXPECT_EQ(guard.found()->nan, 1);
  EXPECT_EQ(guard.found()->infinite, 1);
  EXPECT_EQ(guard.found()->first, (Dims{1, 0}));
}

TEST(Anomaly, FindsTheBackwardOpThoughItsResultIsFinite) {
  Tensor x = leaf({4, 0, 9}, {3});
  Tensor loss;
  const AnomalyGuard guard;
  {
    const LabelScope module(intern_label(0, "root"));
    loss = sum(sqrt(x) * 2.0);
  }
  EXPECT_EQ(error_of([&] { loss.backward(); }),
            "anomaly: the gradient that sqrt gives its input 0, of shape [3], has 0 NaN and 1 "
            "infinite values, the first at [1]; the gradient of its result is finite (in backward "
            "of sqrt, module root)");
  EXPECT_TRUE(guard.found()->in_backward);
}

TEST(Anomaly, KeepsTheFirstAndGoesOnWhereItDoesNotThrow) {
  Tensor x = leaf({-1, 2}, {2});
  const AnomalyGuard guard({.throws = false});
  sum(sqrt(log(x))).backward();
  EXPECT_EQ(guard.found()->op, "log");
  EXPECT_EQ(guard.found()->nan, 1);
  EXPECT_FALSE(guard.found()->text.empty());
}

TEST(Anomaly, ASumOfFiniteGradientsThatOverflows) {
  Tensor x = ones({2}, DType::f16).require_grad();
  const Tensor y = x * 1.0, big = full({2}, 40000, DType::f16);
  const Tensor z = y * big + y * big * 1.0 * full({2}, -1, DType::f16) * full({2}, -1, DType::f16);
  const AnomalyGuard guard;
  const std::string error = error_of([&] { backward(z, ones({2}, DType::f16)); });
  EXPECT_HAS(error, "the gradient of the result of mul_scalar");
  EXPECT_HAS(error, "a sum of finite gradients");
}

TEST(Anomaly, ALeafsSumOverSeveralBackwards) {
  Tensor x = ones({2}, DType::f16).require_grad();
  const AnomalyGuard guard;
  const Tensor up = full({2}, 40000, DType::f16);
  backward(x * 1.0, up);
  EXPECT_HAS(error_of([&] { backward(x * 1.0, up); }), "the gradient of a leaf");
}

TEST(Anomaly, DataThatIsNotFiniteIsToldFromAnOpThatMadeItSo) {
  const Tensor x = from_values({1, kNan}, {2});
  const AnomalyGuard guard;
  EXPECT_HAS(error_of([&] { add(ones({2}), x); }),
             "anomaly: input 1 of add, of shape [2], has 1 NaN");
  EXPECT_EQ(error_of([&] { x.detach(); }), "none");
}

TEST(Anomaly, MasksOfMinusInfinityPassWhereOnlyNanIsSought) {
  const Tensor scores = from_values({1, -kInf}, {2});
  {
    const AnomalyGuard guard({.infinities = false});
    EXPECT_EQ(error_of([&] { softmax(scores * 1.0, 0); }), "none");
    EXPECT_HAS(error_of([&] { softmax(scores + from_values({-kInf, 0}, {2}), 0); }), "softmax");
  }
  const AnomalyGuard guard;
  EXPECT_EQ(error_of([&] { softmax(scores * 2.0, 0); }), "none");
  EXPECT_HAS(error_of([&] { scores - scores; }),
             "the result of sub, of shape [2], has 1 NaN and 0 infinite values, the first at [1]; "
             "its inputs hold infinities, but no NaN");
}

TEST(Anomaly, SeveralOutputsOddLayoutsAndDtypes) {
  const AnomalyGuard guard;
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const Tensor x = transpose(from_values({1, 1, 1, 1, 0, 1}, {2, 3}, dtype), 0, 1);
    EXPECT_HAS(error_of([&] { reciprocal(x); }), "1 infinite values, the first at [1, 1]");
    EXPECT_EQ(error_of([&] { sum(expand(reshape(x, {6, 1}), {6, 4})); }), "none");
  }
  EXPECT_EQ(error_of([] { relu(empty({0, 3})); }), "none");
}

TEST(Anomaly, OneOfSeveralOutputs) {
  static constexpr Op kOp{"halves", OpClass::movement};
  const Tensor x = ones({2});
  std::vector<Tensor> y{ones({2}), full({2}, kInf)};
  const AnomalyGuard guard;
  EXPECT_HAS(error_of([&] { kOp.record_many(std::vector<Tensor>{x}, y, {}, {}); }),
             "anomaly: output 1 of halves, of shape [2], has 0 NaN and 2 infinite values");
}

TEST(Anomaly, NestsAndEnds) {
  Tensor x = leaf({0}, {1});
  {
    const AnomalyGuard outer({.throws = false});
    {
      const AnomalyGuard inner;
      EXPECT_HAS(error_of([&] { log(x); }), "log");
    }
    EXPECT_FALSE(outer.found().has_value());
    reciprocal(x);
    EXPECT_EQ(outer.found()->op, "reciprocal");
  }
  EXPECT_EQ(error_of([&] { log(x); }), "none");
  EXPECT_EQ(detail::thread_state.observers, nullptr);
}

TEST(Anomaly, InsideARecomputedFunction) {
  Tensor x = leaf({0, 4}, {2});
  const AnomalyGuard guard;
  EXPECT_HAS(error_of([&] { recompute([](const Tensor& t) { return log(t); }, x); }), "of log");
  const Tensor y = sum(recompute([](const Tensor& t) { return sqrt(t); }, x));
  EXPECT_HAS(error_of([&] { y.backward(); }), "(in backward of sqrt)");
}

}  // namespace
}  // namespace binade::anomaly_test
