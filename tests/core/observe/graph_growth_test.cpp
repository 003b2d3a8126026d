#include <binade/core/observe/graph_growth_internal.h>

#include <binade/core/autograd/autograd.h>
#include <binade/core/observe/label.h>
#include <binade/core/observe/warning.h>

#include <thread>

#include "tests/core/autograd/autograd_testing.h"

namespace binade::graph_growth_test {
namespace {

class GraphGrowth : public ::testing::Test {
 protected:
  GraphGrowth() {
    detail::restart_graph_growth();
    set_warning_handler([this](const std::string& text) { warnings.push_back(text); });
  }
  ~GraphGrowth() override { set_warning_handler({}); }

  std::vector<std::string> warnings;
  Tensor x = leaf({1, 2}, {2});
  const uint32_t module = intern_label(0, "head");
};

TEST_F(GraphGrowth, LossesKeptInAListAreNamedOnce) {
  std::vector<Tensor> losses;
  for (int step = 0; step < 300; ++step) {
    Tensor h = relu(x * 2.0), loss;
    {
      const LabelScope scope(module);
      loss = mean(h);
    }
    loss.backward();
    losses.push_back(loss);
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_HAS(warnings[0], "kept through results of mean in module head");
  EXPECT_HAS(warnings[0], "detach()");
}

TEST_F(GraphGrowth, ARunningSumOfLossesIsNamed) {
  Tensor total = zeros({}, DType::f64);
  for (int step = 0; step < 200; ++step) {
    Tensor loss = sum(x * x);
    total = sub(total, loss);
    loss.backward();
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_HAS(warnings[0], "results of sub");
}

TEST_F(GraphGrowth, WholeGraphsThatAreKept) {
  std::vector<Tensor> kept;
  for (int step = 0; step < 200; ++step) {
    sum(x * x).backward();
    kept.push_back(softmax(relu(x * 3.0), 0));  // evaluation without NoGradGuard
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_HAS(warnings[0], "results of softmax");
}

TEST_F(GraphGrowth, WhatDoesNotGrowIsNotWarnedOf) {
  std::vector<Tensor> window;
  for (int step = 0; step < 600; ++step) {
    Tensor y = x;
    for (int i = 0; i < 1 + step % 7 + step / 30; ++i) {  // sequences get longer
      y = y * x;
    }
    const Tensor loss = sum(y);
    loss.backward();
    window.push_back(loss);
    if (window.size() > 40) {  // a bounded history
      window.erase(window.begin());
    }
  }
  std::vector<double> values;
  for (int step = 0; step < 300; ++step) {  // detached tensors may be kept
    const Tensor loss = sum(x * x);
    loss.backward();
    values.push_back(loss.item());
  }
  EXPECT_TRUE(warnings.empty()) << warnings[0];
}

TEST_F(GraphGrowth, GraphsThatOtherThreadsLetGoOf) {
  for (int step = 0; step < 300; ++step) {
    const Tensor loss = sum(x * x);
    loss.backward();
    Tensor other = relu(x * 2.0);
    std::thread([other = std::move(other)]() mutable { other = Tensor(); }).join();
  }
  EXPECT_TRUE(warnings.empty()) << warnings[0];
}

}  // namespace
}  // namespace binade::graph_growth_test
