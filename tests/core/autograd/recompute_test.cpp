#include <binade/core/autograd/gradcheck.h>
#include <binade/core/autograd/op.h>
#include <binade/core/autograd/recompute.h>

#include "tests/core/autograd/autograd_testing.h"

namespace binade::recompute_test {
namespace {

// Two layers whose parameters a function captures.
struct Block {
  Tensor w = randn({4, 4}, DType::f64).require_grad(), v = randn({4, 4}, DType::f64).require_grad();
  Tensor operator()(const Tensor& x) const { return matmul(tanh(matmul(x, w)), v); }
};

TEST(Recompute, GradientsAreThoseOfTheDirectCall) {
  manual_seed(1);
  const Block block;
  Tensor x = randn({3, 4}, DType::f64).require_grad();
  const Tensor up = randn({3, 4}, DType::f64);
  const std::vector<Tensor> direct = grad(block(x), {x, block.w, block.v}, {.upstream = {up}});
  const Tensor y = recompute(block, x);
  EXPECT_EQ(values(y), values(block(x)));
  backward(y * 1.0, up);
  EXPECT_EQ(values(x.grad()), values(direct[0]));
  EXPECT_EQ(values(block.w.grad()), values(direct[1]));
  EXPECT_EQ(values(block.v.grad()), values(direct[2]));
}

TEST(Recompute, SavesItsInputsOnly) {
  manual_seed(1);
  const Block block;
  const Tensor x = randn({64, 4}, DType::f64);
  const int64_t before = saved_bytes().live;
  {
    const Tensor y = recompute(block, x);
    EXPECT_EQ(saved_bytes().live - before, 64 * 4 * 8);
  }
  EXPECT_EQ(saved_bytes().live, before);
  const Tensor y = block(x);
  EXPECT_EQ(saved_bytes().live - before, 2 * 64 * 4 * 8)
      << "matmul saves x and the tanh, tanh saves its result, which is the same storage";
}

TEST(Recompute, CapturedParametersAloneAreEnough) {
  manual_seed(1);
  const Block block;
  const Tensor x = randn({3, 4}, DType::f64);  // needs no gradient
  sum(recompute(block, x)).backward();
  EXPECT_TRUE(block.w.grad().defined() && block.v.grad().defined());
  EXPECT_FALSE(recompute([](const Tensor& t) { return t * 2.0; }, x).requires_grad());
}

TEST(Recompute, CapturedResultsAndSharedLeaves) {
  Tensor w = leaf({2}, {1}), x = leaf({3}, {1});
  const Tensor h = w * w;  // captured, with its own history
  const Tensor y = recompute([&](const Tensor& t) { return t * h * w; }, x * w);  // x w^4
  (y + w).backward();
  EXPECT_EQ(w.grad().item(), 4 * 3 * 8 + 1);
  EXPECT_EQ(x.grad().item(), 16);
}

TEST(Recompute, ALeafIsFinalAfterAllSegmentsThatCaptureIt) {
  Tensor w = leaf({2}, {1}), x = leaf({3}, {1});
  std::vector<double> seen;
  static_cast<Leaf&>(*w.history()).on_final = [&](const Tensor& g) { seen.push_back(g.item()); };
  const auto times_w = [&](const Tensor& t) { return t * w; };
  recompute(times_w, recompute(times_w, x)).backward();
  EXPECT_EQ(seen, (std::vector<double>{12}));
}

TEST(Recompute, NestedSegments) {
  manual_seed(2);
  const Block a, b;
  const auto both = [&](const Tensor& t) { return recompute(b, relu(recompute(a, t))); };
  Tensor x = randn({3, 4}, DType::f64).require_grad();
  const std::vector<Tensor> leaves{x, a.w, a.v, b.w, b.v};
  const std::vector<Tensor> direct = grad(sum(b(relu(a(x)))), leaves);
  const std::vector<Tensor> again = grad(sum(recompute(both, x)), leaves);
  for (size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_EQ(values(again[i]), values(direct[i])) << i;
  }
}

TEST(Recompute, DrawsTheSameRandomNumbersAndLeavesTheGeneratorAlone) {
  manual_seed(3);
  Tensor x = ones({1000}, DType::f64).require_grad();
  const Tensor y = recompute([](const Tensor& t) { return dropout(t, 0.5) * 3.0; }, x);
  const Tensor between = rand({5});
  const Generator before = generator();
  sum(y).backward();
  EXPECT_EQ(values(x.grad()), values(y));  // 6 where kept
  EXPECT_EQ(generator().offset, before.offset);
  EXPECT_EQ(generator().seed, before.seed);
}

TEST(Recompute, KeepsThePrecisionPolicy) {
  Tensor x = ones({2, 4}).require_grad(), w = ones({4, 4}).require_grad();
  std::vector<DType> seen;
  Tensor y;
  {
    const PrecisionScope scope(Precision::autocast(DType::bf16));
    y = recompute(
        [&](const Tensor& t) {
          const Tensor z = matmul(t, w);
          seen.push_back(z.dtype());
          return z;
        },
        x);
  }
  backward(y, ones({2, 4}, DType::bf16));
  EXPECT_EQ(seen, (std::vector<DType>{DType::bf16, DType::bf16}));
  EXPECT_EQ(x.grad().at(0), 4);
}

TEST(Recompute, SeveralInputsAndOutputs) {
  Tensor a = leaf({1, 2}, {2}), b = leaf({3, 4}, {2});
  const std::vector<Tensor> y = recompute_many(
      [](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{in[0] * in[1], lt(in[0], in[1]), in[0] + in[1]};
      },
      {a, b});
  EXPECT_FALSE(y[1].requires_grad());
  EXPECT_EQ(grad(sum(y[2]), {a}, {.retain_graph = true})[0].at(0), 1);
  sum(y[0] * y[2]).backward();  // a^2 b + a b^2
  EXPECT_EQ(values(a.grad()), (std::vector<double>{15, 32}));
  EXPECT_EQ(values(b.grad()), (std::vector<double>{7, 20}));
  const Tensor c = recompute([](const Tensor& s, const Tensor& t) { return s * t; }, a, b);
  EXPECT_EQ(values(grad(sum(c), {b})[0]), (std::vector<double>{1, 2}));
}

TEST(Recompute, IsDifferentiatedTwice) {
  manual_seed(4);
  Tensor w = randn({3, 3}, DType::f64).require_grad(), x = randn({3, 3}, DType::f64).require_grad();
  const auto f = [](const std::vector<Tensor>& in) {
    const Tensor h = in[0] * in[1], v = in[1];
    return recompute([h, v](const Tensor& t) { return matmul(t * t, v) * h; }, in[0] * v);
  };
  gradcheck(f, {x, w});
  gradgradcheck(f, {x, w});
}

TEST(Recompute, BatchNormStatisticsMoveOnce) {
  manual_seed(5);
  const Tensor mean = zeros({3}), var = ones({3});
  Tensor x = randn({8, 3, 2, 2}).require_grad();
  const auto f = [&](const Tensor& t) {
    return batch_norm(t, {}, {}, mean, var, {.training = true});
  };
  const Tensor y = recompute(f, x);
  const std::vector<double> after = values(mean);
  backward(y, randn(y.sizes()));
  EXPECT_EQ(values(mean), after);
}

TEST(Recompute, MisuseIsNamed) {
  Tensor x = leaf({1, 2}, {2}), w = leaf({3}, {1});
  const auto times_w = [&](const Tensor& t) { return sum(t * w); };
  const Tensor y = recompute(times_w, x);
  y.backward();
  EXPECT_HAS(error_of([&] { y.backward(); }), "the graph of recompute was freed");
  const Tensor z = recompute(times_w, x);
  {
    const NoGradGuard no_grad;
    w.fill_(4);
  }
  EXPECT_HAS(error_of([&] { z.backward(); }), "recompute: a tensor saved for backward was changed");
  int calls = 0;
  const Tensor u = recompute(
      [&](const Tensor& t) { return ++calls == 1 ? sum(t * w) : reshape(sum(t * w), {1}); }, x);
  EXPECT_HAS(error_of([&] { u.backward(); }), "gave shape [1], f64 in backward and [], f64 before");
  EXPECT_HAS(error_of([&] { recompute([](const Tensor&) { return Tensor(); }, x); }), "undefined");
  EXPECT_HAS(error_of([&] { recompute(times_w, Tensor()); }), "input 0 is undefined");
}

TEST(Recompute, TwiceThroughARetainedGraph) {
  Tensor x = leaf({3}, {1});
  const Tensor y = recompute([](const Tensor& t) { return t * t; }, x);
  backward(y, BackwardOptions{.retain_graph = true});
  y.backward();
  EXPECT_EQ(x.grad().item(), 12);
}

}  // namespace
}  // namespace binade::recompute_test
