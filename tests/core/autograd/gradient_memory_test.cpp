// Tests the memory of gradients: Needs::out_over() reuses the upstream gradient's memory only if it
// has no other owner, and the gradient of a cast is written to the memory of its input's gradient.
#include <binade/core/autograd/hooks.h>
#include <binade/core/autograd/op.h>
#include <binade/core/observe/observer.h>
#include <binade/core/ops/layer_norm.h>

#include "tests/core/autograd/autograd_testing.h"

namespace binade::gradient_memory_test {
namespace {

using Numbers = std::vector<double>;

TEST(GradientMemory, AGradientThatNobodyHoldsIsOverwritten) {
  Tensor x = leaf({-1, 2}, {2});
  const Tensor h = x * 2.0, y = relu(h);
  const void *upstream = nullptr, *downstream = nullptr;
  on_gradient(y, [&](Tensor& g) { upstream = g.view().data; });
  on_gradient(h, [&](Tensor& g) { downstream = g.view().data; });
  sum(y * 3.0).backward();
  EXPECT_EQ(values(x.grad()), (Numbers{0, 6}));
  EXPECT_NE(upstream, nullptr);
  EXPECT_EQ(upstream, downstream);
}

struct Measures : OpObserver {
  bool accepts_fused_ops() const override { return true; }
};
struct Reads : OpObserver {
  void gradients(const GradientEvent& event) override {
    if (std::string(event.node.name()) == "relu") {
      upstream = values(event.upstream);
    }
  }
  Numbers upstream;
};

// A profiler must not cost a step the memory of its gradients.
TEST(GradientMemory, OnlyAnObserverThatReadsValuesKeepsThem) {
  const auto is_overwritten = [](OpObserver& observer) {
    const ObserverScope scope(observer);
    Tensor x = leaf({-1, 2}, {2});
    const Tensor h = x * 2.0, y = relu(h);
    const void *upstream = nullptr, *downstream = nullptr;
    on_gradient(y, [&](Tensor& g) { upstream = g.view().data; });
    on_gradient(h, [&](Tensor& g) { downstream = g.view().data; });
    sum(y * 3.0).backward();
    EXPECT_EQ(values(x.grad()), (Numbers{0, 6}));
    return upstream == downstream;
  };
  Measures measures;
  EXPECT_TRUE(is_overwritten(measures));
  Reads reads;
  EXPECT_FALSE(is_overwritten(reads));
  EXPECT_EQ(reads.upstream, (Numbers{3, 3}));
}

TEST(GradientMemory, AGradientThatAHookKeepsStays) {
  Tensor x = leaf({-1, 2}, {2});
  const Tensor y = relu(x * 2.0);
  Tensor kept;
  on_gradient(y, [&](Tensor& g) { kept = g; });
  sum(y * 3.0).backward();
  EXPECT_EQ(values(kept), (Numbers{3, 3}));
  EXPECT_EQ(values(x.grad()), (Numbers{0, 6}));
}

TEST(GradientMemory, ASeedStays) {
  Tensor x = leaf({-1, 2}, {2});
  const Tensor seed = from_values({5, 7}, {2}, DType::f64);
  relu(x * 2.0).backward(seed);
  EXPECT_EQ(values(seed), (Numbers{5, 7}));
  EXPECT_EQ(values(x.grad()), (Numbers{0, 14}));
}

TEST(GradientMemory, AGradientOfTwoInputsIsNotShared) {
  Tensor a = leaf({-1, 2}, {2}), b = leaf({3, -4}, {2});
  sum((relu(a * 1.0) + relu(b * 1.0)) * 3.0).backward();
  EXPECT_EQ(values(a.grad()), (Numbers{0, 3}));
  EXPECT_EQ(values(b.grad()), (Numbers{3, 0}));
}

// The sum gives the same tensor to both inputs; a later addition for one must not change the other.
TEST(GradientMemory, AGradientThatTwoNodesHoldIsNotAddedInto) {
  Tensor x = leaf({1, 2}, {2});
  const Tensor u = x * 2.0, v = x * 3.0, w = u * 4.0, s = u + v;
  (s + w).backward(from_values({1, 1}, {2}, DType::f64));
  EXPECT_EQ(values(x.grad()), (Numbers{13, 13}));  // 2 (1 + 4) + 3
}

TEST(GradientMemory, GradAsksForWhatIsOverwritten) {
  Tensor x = leaf({-1, 2}, {2});
  const Tensor h = x * 2.0, y = relu(h);
  const std::vector<Tensor> gradients = grad(sum(y * 3.0), {y, h, x});
  EXPECT_EQ(values(gradients[0]), (Numbers{3, 3}));
  EXPECT_EQ(values(gradients[1]), (Numbers{0, 3}));
  EXPECT_EQ(values(gradients[2]), (Numbers{0, 6}));
}

// A residual that is also the input of the norm has a gradient with two contributions.
TEST(GradientMemory, AResidualBesideTheNormOfTheSameTensor) {
  const auto gradient = [](bool fused) {
    manual_seed(3);
    Tensor x = randn({6, 3, 2, 2}, DType::f64).require_grad();
    const Tensor w = ones({3}, DType::f64), h = x * 2.0, dy = randn({6, 3, 2, 2}, DType::f64);
    const Tensor y = fused ? batch_norm(h, w, {}, {}, {}, {.residual = h, .relu = true})
                           : relu(batch_norm(h, w, {}, {}, {}) + h);
    sum(y * dy).backward();
    return values(x.grad());
  };
  const Numbers one = gradient(true), three = gradient(false);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(one[i], three[i], 1e-12);
  }
}

struct LastCast : OpObserver {
  void result(const OpEvent& event) override {
    if (std::string(event.op.name) == "cast" && event.in_backward) {
      at = event.outputs[0].view().data;
    }
  }
  const void* at = nullptr;
};

TEST(GradientMemory, ACastsGradientIsWrittenIntoTheLeafsBuffer) {
  Tensor w = leaf({1, 2, 3, 4}, {2, 2});
  const Tensor buffer = zeros({2, 2}, DType::f64);
  static_cast<Leaf&>(*w.history()).buffer = buffer;  // as an arena range would be
  LastCast last;
  const ObserverScope scope(last);
  backward(matmul(ones({1, 2}), cast(w, DType::f32)), from_values({1, 2}, {1, 2}, DType::f32));
  EXPECT_EQ(values(buffer), (Numbers{1, 2, 1, 2}));
  EXPECT_EQ(last.at, buffer.view().data);
}

// The gradient of a cast is added if the leaf already has a gradient.
TEST(GradientMemory, CastsOfOneLeafAddUp) {
  Tensor w = leaf({1, 2}, {2});
  sum(cast(w, DType::f32) * 3.0 + cast(w, DType::f16).to(DType::f32)).backward();
  EXPECT_EQ(values(w.grad()), (Numbers{4, 4}));
}

}  // namespace
}  // namespace binade::gradient_memory_test
