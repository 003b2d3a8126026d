// Tests observers of a thread's ops: the events they get, several at once, and what they may do.
#include <binade/core/autograd/op.h>
#include <binade/core/autograd/recompute.h>
#include <binade/core/observe/anomaly.h>
#include <binade/core/observe/label.h>
#include <binade/core/observe/observer.h>

#include "tests/core/autograd/autograd_testing.h"

namespace binade::observer_test {
namespace {

// Writes each event as one line.
struct Journal : OpObserver {
  void result(const OpEvent& event) override {
    std::string line = text(event.in_backward ? "backward " : "", event.op.name, "(");
    for (const Tensor* input : event.inputs) {
      line += input->defined() ? to_string(input->dtype()) : "none";
      line += input == event.inputs.back() ? "" : " ";
    }
    line += ")";
    for (const Tensor& y : event.outputs) {
      line += text(" ", y.dtype(), y.sizes());
    }
    note(line, event.module);
    if (event.backward_of) {
      lines.back() += text(" of ", event.backward_of->name());
    }
  }
  void upstream(const GradientEvent& event) override {
    note(text("upstream ", event.node.name(), " at scale ", event.run.scale), event.node.label);
    EXPECT_EQ(event.gradients, nullptr);
  }
  void gradients(const GradientEvent& event) override {
    int count = 0;
    for (int i = 0; i < event.node.edge_count; ++i) {
      count += (*event.gradients)[i].defined();
    }
    note(text(count, " gradients of ", event.node.name()), event.node.label);
  }
  void note(const std::string& line, uint32_t module) {
    lines.push_back(module ? line + " @" + label_text(module) : line);
  }
  std::vector<std::string> lines;
};

using Lines = std::vector<std::string>;

TEST(Observer, SeesOpsOfForwardAndBackwardWithTheirModules) {
  Tensor x = leaf({1, 2}, {2}), b = leaf({3}, {1});
  Journal journal;
  {
    const ObserverScope scope(journal);
    Tensor y;
    {
      const LabelScope in_module(intern_label(intern_label(0, "net"), "head"));
      y = square(x) + b;
    }
    sum(y).backward();
  }
  square(x);
  EXPECT_EQ(journal.lines,
            (Lines{"square(f64) f64[2] @net.head", "add(f64 f64) f64[2] @net.head",
                   "sum(f64) f64[]", "upstream sum at scale 1",
                   "backward reshape(f64) f64[1] of sum", "backward expand(f64) f64[2] of sum",
                   "1 gradients of sum", "upstream add at scale 1 @net.head",
                   "2 gradients of add @net.head", "backward sum_to(f64) f64[1] @net.head of add",
                   "upstream leaf at scale 1", "upstream square at scale 1 @net.head",
                   "1 gradients of square @net.head", "upstream leaf at scale 1"}));
}

TEST(Observer, SeveralOutputsAndUndefinedInputs) {
  Journal journal;
  const ObserverScope scope(journal);
  split(ones({4}), 2);
  linear(ones({1, 2}), ones({3, 2}), Tensor());
  EXPECT_EQ(journal.lines, (Lines{"split(f32) f32[2] f32[2]", "linear(f32 f32 none) f32[1, 3]"}));
}

TEST(Observer, SeveralAtOnceEndInAnyOrder) {
  Journal one, two;
  auto first = std::make_unique<ObserverScope>(one);
  auto second = std::make_unique<ObserverScope>(two);
  relu(ones({1}));
  first.reset();
  relu(ones({1}));
  second.reset();
  relu(ones({1}));
  EXPECT_EQ(one.lines.size(), 1u);
  EXPECT_EQ(two.lines.size(), 2u);
  EXPECT_EQ(detail::thread_state.observers, nullptr);
}

TEST(Observer, ItsOwnOpsAreNeitherObservedNorRecordedNorCast) {
  struct Busy : OpObserver {
    void result(const OpEvent& event) override {
      ++events;
      const Tensor y = event.outputs[0] + event.outputs[0];
      EXPECT_FALSE(y.requires_grad());
      EXPECT_EQ(matmul(ones({1, 1}), ones({1, 1})).dtype(), DType::f32);
    }
    int events = 0;
  } busy;
  Tensor x = leaf({1}, {1});
  const PrecisionScope precision(Precision::autocast(DType::f16));
  const ObserverScope scope(busy);
  EXPECT_TRUE(square(x).requires_grad());
  EXPECT_EQ(busy.events, 1);
}

TEST(Observer, AnExceptionIsThatOfTheOpAndLeavesTheThreadAsItWas) {
  struct Thrower : OpObserver {
    void result(const OpEvent& event) override { fail("no ", event.op.name, " here"); }
  } thrower;
  Tensor x = leaf({1}, {1});
  {
    const ObserverScope scope(thrower);
    EXPECT_HAS(error_of([&] { relu(x); }), "no relu here");
    EXPECT_TRUE(grad_enabled());
    EXPECT_NE(detail::thread_state.observers, nullptr);
  }
  EXPECT_TRUE(relu(x).requires_grad());
}

TEST(Observer, SeesBothRunsOfARecomputedFunction) {
  Tensor x = leaf({1, 2}, {2}), w = leaf({3, 4}, {2});
  Journal journal;
  const ObserverScope scope(journal);
  const AnomalyGuard guard;  // a second observer
  sum(recompute([&w](const Tensor& x) { return x * w; }, x)).backward();
  EXPECT_EQ(std::count(journal.lines.begin(), journal.lines.end(), "mul(f64 f64) f64[2]"), 1);
  EXPECT_EQ(std::count(journal.lines.begin(), journal.lines.end(),
                       "backward mul(f64 f64) f64[2] of recompute"),
            1);
  EXPECT_EQ(w.grad().at(1), 2);
}

}  // namespace
}  // namespace binade::observer_test
