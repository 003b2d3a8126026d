#include <binade/core/autograd/op.h>

#include <thread>

#include "tests/core/autograd/autograd_testing.h"

namespace binade::autograd_test {
namespace {

TEST(Autograd, SharedInputAndDiamond) {
  Tensor x = leaf({2, 3}, {2});
  Tensor a = x * x, b = a + x;
  backward(a * b, from_values({1, 10}, {2}, DType::f64));  // x^4 + x^3
  EXPECT_EQ(values(x.grad()), (std::vector<double>{4 * 8 + 3 * 4, 10 * (4 * 27 + 3 * 9)}));
}

TEST(Autograd, BroadcastIsSummedByTheEngine) {
  Tensor x = leaf({1, 2, 3}, {3}), y = leaf({10, 20}, {2, 1});
  backward(x * y, from_values({1, 2, 3, 4, 5, 6}, {2, 3}, DType::f64));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{90, 120, 150}));
  EXPECT_EQ(values(y.grad()), (std::vector<double>{14, 32}));
}

TEST(Autograd, GradientsAccumulateUntilCleared) {
  Tensor x = leaf({3}, {1});
  (x * 2.0).backward();
  (x * 5.0).backward();
  EXPECT_EQ(x.grad().item(), 7);
  x.zero_grad();
  EXPECT_FALSE(x.grad().defined());
  (x * 4.0).backward();
  EXPECT_EQ(x.grad().item(), 4);
}

TEST(Autograd, DepthOfAMillionNeitherOverflowsNorLeaks) {
  Tensor x = leaf({1}, {1}), one = leaf({1}, {1});
  for (int round = 0; round < 2; ++round) {
    Tensor y = x;
    for (int i = 0; i < 1'000'000; ++i) {
      y = y + one;
    }
    if (round == 0) {
      y.backward();
      EXPECT_EQ(one.grad().item(), 1e6);
      EXPECT_EQ(x.grad().item(), 1);
    }
  }  // the second graph is destroyed without a backward
  EXPECT_EQ(saved_bytes().live, 0);
}

TEST(Autograd, ASavedTensorChangedInPlaceIsNamed) {
  Tensor x = leaf({1, 2}, {2});
  Tensor y = x + x, z = y.detach(), p = y * y;
  z.fill_(3);
  const std::string error = error_of([&] { backward(p, ones({2}, DType::f64)); });
  EXPECT_NE(error.find("mul: a tensor saved for backward was changed in place"), std::string::npos)
      << error;
  EXPECT_FALSE(x.grad().defined());
}

TEST(Autograd, AFreedGraphIsNamedAndRetainGraphKeepsIt) {
  Tensor x = leaf({3}, {1});
  Tensor y = x * x, z = y * y;
  backward(z, BackwardOptions{.retain_graph = true});
  z.backward();
  EXPECT_EQ(x.grad().item(), 2 * 4 * 27);
  EXPECT_NE(error_of([&] { z.backward(); }).find("was freed"), std::string::npos);
}

// Guards and generators belong to the thread that created them.
TEST(Autograd, GuardsAndSeedsAreOfOneThread) {
  const NoGradGuard guard;
  manual_seed(5);
  const Tensor here = rand({4}, DType::f64);
  bool records = false;
  Tensor there, reseeded;
  std::thread([&] {
    records = grad_enabled();
    there = rand({4}, DType::f64);
    manual_seed(5);
    reseeded = rand({4}, DType::f64);
  }).join();
  EXPECT_TRUE(records);
  EXPECT_FALSE(grad_enabled());
  EXPECT_NE(there.at(0), here.at(0));
  EXPECT_EQ(reseeded.at(0), here.at(0));
}

TEST(Autograd, BackwardNeedsAHistoryAndAScalar) {
  Tensor x = leaf({1, 2}, {2});
  EXPECT_NE(error_of([&] { (x * x).backward(); }).find("expected one element"), std::string::npos);
  EXPECT_NE(error_of([] { Tensor().backward(); }).find("undefined"), std::string::npos);
  EXPECT_NE(error_of([&] { backward(x * x, ones({3}, DType::f64)); }).find("seed of shape [3]"),
            std::string::npos);
}

// The error says why a tensor has no path for a gradient.
TEST(Autograd, BackwardSaysWhyThereIsNothingToDo) {
  const Tensor w = leaf({1, 2}, {2}), plain = from_values({3, 4}, {2}, DType::f64);
  const auto under_guard = [&] {
    const NoGradGuard guard;
    return mul(w, w);
  };
  const auto several = [&] { return split(under_guard(), 1, 0)[1]; };
  const char *guarded = "computed under a NoGradGuard", *detached = "detach() cut it",
             *op = "an op without a gradient", *none = "nothing that it was computed from requires";
  const std::vector<std::pair<Tensor, std::vector<const char*>>> cases = {
      {sum(plain * plain), {none}},
      {full({}, 2), {none}},
      {sum(under_guard()), {guarded}},
      {sum(mul(relu(under_guard()), plain)), {guarded}},
      {sum(several()), {guarded}},
      {w.detach(), {detached}},
      {sum(w * w).detach(), {detached}},
      {sum(w.detach() * plain), {detached}},
      {sum(mul((w * w).detach(), under_guard())), {guarded, detached}},
      {sum(cast(gt(w, plain), DType::f64) * plain), {op}},
      {sum(cast(cast(w, DType::i64), DType::f64)), {op}},
      {argmax(w, 0), {"got dtype i64, expected a floating dtype"}},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& [root, reasons] = cases[i];
    const std::string error = error_of([&, &root = root] { backward(root, root); });
    const std::string by_grad = error_of([&, &root = root] { (void)grad(root, {w}); });
    for (const char* reason : {guarded, detached, op, none}) {
      const bool expected = std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
      EXPECT_EQ(error.find(reason) != std::string::npos, expected) << i << ": " << error;
      EXPECT_EQ(by_grad.find(reason) != std::string::npos, expected) << i << ": " << by_grad;
    }
    EXPECT_NE(error.find(reasons[0]), std::string::npos) << i << ": " << error;
    EXPECT_EQ(error.find("backward: got a tensor of shape"), 0u) << error;
  }
  const NoGradGuard guard;
  const std::string now = error_of([&] { sum(plain).backward(); });
  EXPECT_NE(now.find("a NoGradGuard is in force on this thread"), std::string::npos) << now;
}

TEST(Autograd, NoGradRecordsAndSavesNothing) {
  Tensor x = leaf({1, 2}, {2});
  NoGradGuard guard;
  Tensor y = x * x;
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(saved_bytes().live, 0);
}

TEST(Autograd, SavedBytesCountEachStorageOnceAndNotParameters) {
  Tensor w = leaf({1, 2}, {2});
  Tensor a = w + w;  // saves nothing
  Tensor b = a * a;  // holds a, once
  EXPECT_EQ(saved_bytes().live, 16);
  Tensor c = b * w;  // holds b; w is a leaf
  EXPECT_EQ(saved_bytes().live, 32);
  backward(c, ones({2}, DType::f64));
  a = b = c = Tensor();
  EXPECT_EQ(saved_bytes().live, 0);
}

TEST(Autograd, HookFiresWhenTheGradientIsFinal) {
  Tensor x = leaf({2}, {1}), y = leaf({5}, {1});
  std::vector<double> seen;
  static_cast<Leaf&>(*x.history()).on_final = [&](const Tensor& g) { seen.push_back(g.item()); };
  (x * y + x * x).backward();
  EXPECT_EQ(seen, (std::vector<double>{9}));
}

TEST(Autograd, SecondDerivative) {
  Tensor x = leaf({3}, {1});
  backward(x * x * x, BackwardOptions{.create_graph = true});
  Tensor first = x.grad();
  EXPECT_EQ(first.item(), 27);
  Tensor g = first * 1.0;
  x.zero_grad();
  g.backward();
  EXPECT_EQ(x.grad().item(), 18);
}

TEST(Autograd, DoubleBackwardOfAKernelGradientIsANamedError) {
  Tensor x = leaf({3}, {1});
  Tensor y = cumprod(x, 0);
  const std::string error = error_of([&] { backward(y, BackwardOptions{.create_graph = true}); });
  EXPECT_NE(error.find("double backward of cumprod is not implemented"), std::string::npos)
      << error;
}

TEST(Autograd, SeveralOutputsRunOnce) {
  Tensor x = leaf({1, 2, 3, 4, 5}, {5});
  std::vector<Tensor> parts = split(x, 2);
  ASSERT_EQ(parts.size(), 3u);
  sum(parts[0] * 2.0 + parts[0] * parts[1]).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{5, 6, 1, 2, 0}));
}

TEST(Autograd, AnExceptionInBackwardLeavesNoHalfSum) {
  static constexpr Op kBad{"bad", OpClass::pointwise};
  Tensor x = leaf({2}, {1});
  Tensor y = x * 3.0, copy = empty_like(y);
  copy.copy_(y.detach());
  Tensor z = kBad.record({y}, copy, save(), [](const Tensor&) -> Grads { fail("planted"); });
  Tensor sum = y + z;
  EXPECT_NE(error_of([&] {
              backward(sum, BackwardOptions{.retain_graph = true});
            }).find("planted (in backward of bad)"),
            std::string::npos);
  x.zero_grad();
  y.backward();
  EXPECT_EQ(x.grad().item(), 3);
}

TEST(Autograd, ABroadcastGradientIsNotAddedIntoInPlace) {
  Tensor w = from_values({1, 2, 3}, {3}, DType::f64);
  for (bool mean_last : {false, true}) {
    Tensor x = leaf({1, 2, 3}, {3});
    Tensor y = square(x);
    Tensor loss = mean_last ? sum(y * w) + mean(y) * 3.0 : mean(y) * 3.0 + sum(y * w);
    loss.backward();  // d/dx = 2 x (w + 1)
    EXPECT_EQ(values(x.grad()), (std::vector<double>{4, 12, 24})) << mean_last;
  }
}

TEST(Autograd, ARecordedGradientIsNotOverwritten) {
  Tensor x = leaf({2}, {1}), z = leaf({3}, {1});
  backward(square((x + z) * 2.0) * 1.0, BackwardOptions{.create_graph = false});
  EXPECT_EQ(x.grad().item(), 40);
  x.zero_grad();
  z.zero_grad();
  Tensor s = x + z;
  backward(s * s, BackwardOptions{.create_graph = true});  // both gradients are one tensor, 2 s
  (x * 7.0).backward();
  EXPECT_EQ(x.grad().item(), 17);
  EXPECT_EQ(z.grad().item(), 10);
  z.zero_grad();  // releases the recorded graph
}

TEST(Autograd, AGradientThatWasSavedAndChangesIsNamed) {
  Tensor x = leaf({2}, {1}), v = leaf({5}, {1});
  (x * 3.0).backward();
  Tensor product = v * x.grad();
  (x * 4.0).backward();
  EXPECT_NE(error_of([&] { product.backward(); }).find("changed in place"), std::string::npos);
}

TEST(Autograd, AFailedBackwardForgetsWhatItTouchedAndCannotBeRepeatedInSilence) {
  static constexpr Op kBad{"bad", OpClass::pointwise};
  Tensor x = leaf({2}, {1}), z = leaf({3}, {1});
  Tensor y = z * 3.0, copy = empty_like(y);
  copy.copy_(y.detach());
  Tensor bad = kBad.record({y}, copy, save(), [](const Tensor&) -> Grads { fail("planted"); });
  Tensor sum = bad + x;
  EXPECT_NE(error_of([&] { sum.backward(); }).find("planted"), std::string::npos);
  EXPECT_FALSE(x.grad().defined());
  EXPECT_NE(error_of([&] { sum.backward(); }).find("was freed"), std::string::npos);
  Tensor other = empty_like(y);
  Tensor alone = kBad.record({y}, other, save(), [](const Tensor&) -> Grads { fail("planted"); });
  EXPECT_NE(error_of([&] { alone.backward(); }).find("planted"), std::string::npos);
  EXPECT_NE(error_of([&] { alone.backward(); }).find("was freed"), std::string::npos);
}

TEST(Autograd, OneLeafTwiceInOneOp) {
  Tensor w = leaf({1, 2, 3, 4}, {2, 2});
  static_cast<Leaf&>(*w.history()).buffer = zeros({2, 2}, DType::f64);  // as an arena range
  backward(matmul(w, w), from_values({1, 0, 0, 0}, {2, 2}, DType::f64));
  // d/dw (w w)_00 = d(w00^2 + w01 w10)
  EXPECT_EQ(values(w.grad()), (std::vector<double>{2, 3, 2, 0}));
}

TEST(Autograd, AFirstGradientIsWrittenIntoTheLeafsBuffer) {
  Tensor w = leaf({1, 2, 3, 4}, {2, 2});
  Tensor buffer = zeros({2, 2}, DType::f64);
  static_cast<Leaf&>(*w.history()).buffer = buffer;
  backward(matmul(ones({1, 2}, DType::f64), w), from_values({1, 2}, {1, 2}, DType::f64));
  EXPECT_EQ(values(buffer), (std::vector<double>{1, 2, 1, 2}));
}

TEST(Autograd, ScalesMayNotMix) {
  Tensor x = leaf({2}, {1});
  backward(x * 1.0, BackwardOptions{.scale = 8});
  EXPECT_EQ(x.grad().item(), 1);
  const std::string error = error_of([&] { backward(x * 1.0, BackwardOptions{.scale = 4}); });
  EXPECT_NE(error.find("held at scale 8"), std::string::npos) << error;
}

TEST(Autograd, GraphsMayDieInOtherThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&good] {
      Tensor x = leaf({1, 2}, {2});
      Tensor y = x;
      for (int i = 0; i < 2000; ++i) {
        y = y + x * x;
      }
      std::thread([y = std::move(y)]() mutable { y = Tensor(); }).join();
      backward(x * x, ones({2}, DType::f64));
      good += x.grad().at(1) == 4;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(good, 4);
}

TEST(Autograd, InPlaceNeedsADetachedTensor) {
  Tensor x = leaf({2}, {1});
  EXPECT_NE(error_of([&] { x.fill_(1); }).find("NoGradGuard"), std::string::npos);
  Tensor y = x * 2.0;
  NoGradGuard guard;
  x.fill_(1);
  EXPECT_EQ(x.item(), 1);
  EXPECT_NE(error_of([&] { y.fill_(1); }).find("detach()"), std::string::npos);
}

}  // namespace
}  // namespace binade::autograd_test
