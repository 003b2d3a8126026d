#include <binade/core/autograd/hooks.h>

#include <memory>

#include "tests/core/autograd/autograd_testing.h"

namespace binade::hooks_test {
namespace {

TEST(Hooks, OfAResultSeeItsWholeGradientBeforeItGoesOn) {
  Tensor x = leaf({2}, {1});
  Tensor y = x * 3.0;
  std::vector<double> seen;
  on_gradient(y, [&](Tensor& g) { seen.push_back(g.item()); });
  (y * y + y).backward();
  EXPECT_EQ(seen, (std::vector<double>{13}));
  EXPECT_EQ(x.grad().item(), 39);
}

TEST(Hooks, MayReplaceAGradient) {
  Tensor x = leaf({2}, {1});
  Tensor y = x * 3.0;
  on_gradient(y, [](Tensor& g) { g = g * 10.0; });
  on_gradient(y, [](Tensor& g) { g = g + 1.0; });
  y.backward();
  EXPECT_EQ(x.grad().item(), 33);
}

TEST(Hooks, OfALeafRunOnceWhenItIsFinal) {
  Tensor x = leaf({2}, {1}), y = leaf({5}, {1});
  std::vector<double> seen;
  on_gradient(x, [&](Tensor& g) { seen.push_back(g.item()); });
  (x * y + x * x).backward();
  EXPECT_EQ(seen, (std::vector<double>{9}));
  (x * y).backward();  // adds to the first gradient
  EXPECT_EQ(seen, (std::vector<double>{9, 14}));
}

TEST(Hooks, OfALeafReplaceInItsBuffer) {
  Tensor x = leaf({1, 2, 3, 4}, {2, 2});
  Tensor buffer = zeros({2, 2}, DType::f64);
  static_cast<Leaf&>(*x.history()).buffer = buffer;
  on_gradient(x, [](Tensor& g) { g = transpose(g, 0, 1); });  // a view of the gradient
  backward(matmul(from_values({1, 2, 3, 4}, {2, 2}, DType::f64), x), ones({2, 2}, DType::f64));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{4, 6, 4, 6}));
  EXPECT_EQ(values(buffer), (std::vector<double>{4, 6, 4, 6}));
}

TEST(Hooks, AreRemoved) {
  Tensor x = leaf({2}, {1});
  int runs = 0;
  HookHandle first = on_gradient(x, [&](Tensor&) { runs += 1; });
  on_gradient(x, [&](Tensor&) { runs += 10; });
  (x * 1.0).backward();
  first.remove();
  first.remove();
  (x * 1.0).backward();
  EXPECT_EQ(runs, 21);
  auto held = std::make_shared<int>(0);
  Tensor y = x * 2.0;
  on_gradient(y, [held](Tensor&) {});
  y = Tensor();
  EXPECT_EQ(held.use_count(), 1) << "a hook lives as long as the history of its tensor";
}

TEST(Hooks, RunUnderGradAndDoubleBackward) {
  Tensor x = leaf({3}, {1});
  Tensor y = x * x;
  on_gradient(y, [](Tensor& g) { g = g * 2.0; });
  const Tensor g = grad(y * x, {x}, {.create_graph = true})[0];  // x^2 + 2 x 2x
  EXPECT_EQ(g.item(), 9 + 36);
  // y is part of the recorded gradient, so its hook runs again: 8 x from 4 x^2, 2 x 2 x from x^2.
  EXPECT_EQ(grad(g, {x})[0].item(), 24 + 12);
}

TEST(Hooks, ExplainBadUse) {
  Tensor x = leaf({2, 3}, {2});
  EXPECT_HAS(error_of([] { on_gradient(ones({1}), [](Tensor&) {}); }), "without history");
  EXPECT_HAS(error_of([&] { on_gradient(x, {}); }), "empty function");
  Tensor y = x * 2.0;
  on_gradient(y, [](Tensor& g) { g = sum(g); });
  EXPECT_HAS(error_of([&] { sum(y).backward(); }),
             "a hook of mul_scalar put in a gradient of shape []");
  Tensor z = x * 2.0;
  on_gradient(z, [](Tensor& g) { g = Tensor(); });
  EXPECT_HAS(error_of([&] { sum(z).backward(); }), "put in an undefined tensor");
}

}  // namespace
}  // namespace binade::hooks_test
