#include <binade/core/autograd/gradcheck.h>
#include <binade/core/autograd/op.h>

#include "tests/core/autograd/autograd_testing.h"

namespace binade::grad_test {
namespace {

TEST(Grad, GivesGradientsAndLeavesThoseOfLeavesAlone) {
  Tensor x = leaf({2, 3}, {2}), w = leaf({5, 7}, {2});
  (x * 1.0).backward(from_values({1, 1}, {2}, DType::f64));
  Tensor y = sum(x * w * x);
  const std::vector<Tensor> g = grad(y, {x, w});
  EXPECT_EQ(values(g[0]), (std::vector<double>{20, 42}));
  EXPECT_EQ(values(g[1]), (std::vector<double>{4, 9}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{1, 1}));
  EXPECT_FALSE(w.grad().defined());
}

TEST(Grad, AParametersBufferIsNotWritten) {
  Tensor w = leaf({1, 2, 3, 4}, {2, 2});
  Tensor buffer = zeros({2, 2}, DType::f64);
  static_cast<Leaf&>(*w.history()).buffer = buffer;  // as an arena range would be
  const Tensor y = matmul(ones({1, 2}, DType::f64), w);
  EXPECT_EQ(values(grad({y}, {w}, {.upstream = {ones({1, 2}, DType::f64)}})[0]),
            (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(values(buffer), (std::vector<double>{0, 0, 0, 0}));
}

TEST(Grad, OfResultsAndWhatTheyWereComputedFrom) {
  Tensor x = leaf({3}, {1});
  Tensor a = x * x, b = a * x;
  const std::vector<Tensor> g = grad(b, {a, x, b, a});
  EXPECT_EQ(g[0].item(), 3);
  EXPECT_EQ(g[1].item(), 27);
  EXPECT_EQ(g[2].item(), 1);
  EXPECT_EQ(g[3].item(), 3);
}

TEST(Grad, OfASumOfRecordedGradients) {
  Tensor x = leaf({3}, {1});
  const Tensor u = x * 1.0;
  const Tensor first = grad(u * u + u * u * u, {x}, {.create_graph = true})[0];
  EXPECT_NEAR(first.item(), 33, 1e-10);
  EXPECT_NEAR(grad(first, {x})[0].item(), 20, 1e-10);
}

TEST(Grad, OfOneOfSeveralOutputsOfAnOp) {
  Tensor x = leaf({1, 2, 3, 4}, {4});
  const std::vector<Tensor> parts = split(x * 2.0, 2);
  const Tensor y = sum(parts[0] * parts[1]);
  const std::vector<Tensor> g = grad(y, {x, parts[1]});
  EXPECT_EQ(values(g[0]), (std::vector<double>{12, 16, 4, 8}));
  EXPECT_EQ(values(g[1]), (std::vector<double>{2, 4}));
}

TEST(Grad, SeveralOutputsWithUpstreams) {
  Tensor x = leaf({1, 2}, {2});
  const Tensor a = x * 3.0, b = sum(x * x);
  const Tensor up = from_values({10, 100}, {2}, DType::f64);
  EXPECT_EQ(values(grad({a, b}, {x}, {.upstream = {up, Tensor()}})[0]),
            (std::vector<double>{32, 304}));
}

// Counts how often its backward runs.
int backward_runs = 0;
Tensor counted(const Tensor& x) {
  static constexpr Op kOp{"counted", OpClass::movement, true};
  Tensor y = x.detach();
  return kOp.record({x}, y, save(), [](const Tensor& dy) -> Grads {
    ++backward_runs;
    return {dy};
  });
}

TEST(Grad, ComputesOnlyWhatLeadsToAnInput) {
  Tensor x = leaf({3}, {1}), w = leaf({2}, {1});
  const Tensor y = counted(w * 2.0) * counted(x);
  backward_runs = 0;
  EXPECT_EQ(grad(y, {x})[0].item(), 4);
  EXPECT_EQ(backward_runs, 1);
}

TEST(Grad, GradientPenalty) {  // d/dw of (d(w x^2)/dx - 1)^2
  Tensor x = leaf({3}, {1}), w = leaf({2}, {1});
  const Tensor g = grad(w * x * x, {x}, {.create_graph = true})[0];
  EXPECT_EQ(g.item(), 12);
  const Tensor d = g + -1.0;
  (d * d).backward();
  EXPECT_EQ(w.grad().item(), 2 * 11 * 6);
  EXPECT_EQ(x.grad().item(), 2 * 11 * 4);
}

TEST(Grad, ExplainsBadUse) {
  Tensor x = leaf({1, 2}, {2}), w = leaf({5}, {1});
  EXPECT_HAS(error_of([&] {
               grad(sum(x), {x, w});
             }),
             "grad: the outputs do not depend on input 1 (shape [1], a leaf)");
  EXPECT_FALSE(grad(sum(x), {x, w}, {.allow_unused = true})[1].defined());
  EXPECT_HAS(error_of([&] { grad(x * x, {x}); }), "without an upstream gradient");
  EXPECT_HAS(error_of([&] { grad(x * x, {x}, {.upstream = {ones({3}, DType::f64)}}); }),
             "upstream gradient of shape [3] for output 0, expected [2]");
  EXPECT_HAS(error_of([&] { grad(sum(x), {ones({2})}); }), "input 0 wants no gradient");
  EXPECT_HAS(error_of([&] { grad(ones({1}), {x}); }), "output 0 has no history");
  Tensor y = x * x, z = sum(y);
  grad(z, {x});
  EXPECT_HAS(error_of([&] { grad(z, {x}); }), "grad: the graph of sum was freed");
  EXPECT_HAS(error_of([&] { grad(sum(y * x), {x}); }), "was freed");
}

TEST(Grad, RetainsTheGraphOnRequest) {
  Tensor x = leaf({3}, {1});
  const Tensor y = x * x;
  EXPECT_EQ(grad(y, {x}, {.retain_graph = true})[0].item(), 6);
  EXPECT_EQ(grad(y, {x})[0].item(), 6);
}

TEST(Gradgradcheck, AcceptsRightAndRejectsWrongSecondDerivatives) {
  Tensor a = rand({2, 3}, DType::f64), b = rand({3, 2}, DType::f64);
  a.require_grad();
  b.require_grad();
  gradgradcheck([](const auto& in) { return matmul(in[0] * in[0], in[1]); }, {a, b});
  static constexpr Op kOp{"wrong_twice", OpClass::pointwise, true};
  const auto wrong = [](const std::vector<Tensor>& in) {  // the gradient of x^3 loses its history
    Tensor y;
    {
      const NoGradGuard no_grad;
      y = in[0] * in[0] * in[0];
    }
    return kOp.record({in[0]}, y, save(in[0]), [](const Tensor& dy, const Tensor& x) -> Grads {
      return {dy * x * x.detach() * 3.0};
    });
  };
  EXPECT_HAS(error_of([&] { gradgradcheck(wrong, {a}); }), "gradcheck: input 0, element 0");
  gradcheck(wrong, {a});
  EXPECT_HAS(
      error_of([&] { gradgradcheck([](const auto& in) { return cumprod(in[0], 0); }, {a}); }),
      "double backward of cumprod is not implemented");
}

}  // namespace
}  // namespace binade::grad_test
