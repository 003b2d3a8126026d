// A module that runs in the forward of another one without being registered there: one warning, and
// none if it is intended.
#include <binade/core/autograd/recompute.h>
#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/activation.h>
#include <binade/nn/attention.h>
#include <binade/nn/models.h>
#include <binade/nn/rnn.h>
#include <binade/nn/sequential.h>
#include <gtest/gtest.h>

namespace binade::nn::unregistered_test {
namespace {

class Warnings {
 public:
  Warnings()
      : before_(set_warning_handler([this](const std::string& text) { texts.push_back(text); })) {}
  ~Warnings() { set_warning_handler(before_); }
  std::vector<std::string> texts;

 private:
  WarningHandler before_;
};

// Runs `inner` after its own layer, and registers it or not.
class Outer : public Module {
 public:
  explicit Outer(Module& inner, bool registers = false) : inner_(inner) {
    register_module("first", first);
    if (registers) {
      register_module("inner", inner);
    }
  }
  Tensor forward(const Tensor& x) override { return inner_(first(x)); }
  Linear first{{.in = 4, .out = 4}};

 private:
  Module& inner_;
};

class Net : public Module {
 public:
  Net() { register_module("fc", fc); }
  Tensor forward(const Tensor& x) override { return fc(x); }
  Linear fc{{.in = 4, .out = 4}};
};

TEST(UnregisteredModule, WarnsOfARecurrentNetThatRunsFromAStartState) {
  GRU forgotten({.input = 4, .hidden = 4});
  struct Stateful : Module {
    explicit Stateful(GRU& gru) : gru(gru) { register_module("first", first); }
    Tensor forward(const Tensor& x) override { return gru.run(first(x), {}).output; }
    Linear first{{.in = 4, .out = 4}};
    GRU& gru;
  } model(forgotten);
  const Warnings warnings;
  model(randn({3, 2, 4}));
  ASSERT_EQ(warnings.texts.size(), 1U);
  EXPECT_NE(warnings.texts[0].find("GRU"), std::string::npos) << warnings.texts[0];
}

TEST(UnregisteredModule, WarnsOnceWithClassShapesAndPlace) {
  for (const bool evaluates : {false, true}) {
    Linear forgotten({.in = 4, .out = 3});
    Sequential model;
    model.add<Outer>(forgotten);
    model.add<ReLU>();
    const Warnings warnings;
    model.train(!evaluates);
    const NoGradGuard guard;
    for (int i = 0; i < 3; ++i) {
      model(randn({2, 4}));
    }
    ASSERT_EQ(warnings.texts.size(), 1u);
    for (const char* part :
         {"binade::nn::Linear (weight [3, 4], bias [3])", "Outer (0)", "register_module",
          "allow_unregistered()", "neither trained, saved nor moved"}) {
      EXPECT_NE(warnings.texts[0].find(part), std::string::npos) << warnings.texts[0];
    }
  }
}

TEST(UnregisteredModule, IsFoundBelowItsRootAndInOtherEntries) {
  class Attends : public Module {
   public:
    Tensor forward(const Tensor& x) override { return attention.attend(x, x, x); }
    MultiheadAttention attention{{.embed = 4, .heads = 2}};
  };
  class Reaches : public Module {
   public:
    explicit Reaches(Net& net) : net_(net) {}
    Tensor forward(const Tensor& x) override { return net_.fc(x); }

   private:
    Net& net_;
  };
  const Warnings warnings;
  Attends attends;
  attends(randn({3, 2, 4}));
  ASSERT_EQ(warnings.texts.size(), 1u);
  EXPECT_NE(warnings.texts[0].find("MultiheadAttention"), std::string::npos) << warnings.texts[0];
  Net net;
  Reaches reaches(net);
  reaches(randn({2, 4}));
  ASSERT_EQ(warnings.texts.size(), 2u);
  EXPECT_NE(warnings.texts[1].find("Net (fc.weight [4, 4], fc.bias [4])"), std::string::npos)
      << warnings.texts[1];
}

// Whatever way a parameter is used, the op that records it is seen.
TEST(UnregisteredModule, IsFoundByAnOpThatRecordsItsParameter) {
  enum Way { kForward, kParameter, kMany, kTied };
  struct Uses : Module {
    explicit Uses(Way way) : way(way) { register_module("first", first); }
    Tensor forward(const Tensor& x) override {
      const Tensor h = first(x);
      return way == kForward ? forgotten.forward(h)
             : way == kMany  ? cat({h, forgotten.weight})
                             : linear(h, forgotten.weight);
    }
    Way way;
    Linear first{{.in = 4, .out = 4}}, forgotten{{.in = 4, .out = 4}};
  };
  for (const Way way : {kForward, kParameter, kMany, kTied}) {
    for (const bool arena : {false, true}) {
      Uses model(way);
      if (way == kTied) {  // trained and saved as a part of the model
        model.forgotten.weight = model.first.weight;
      }
      if (arena) {
        static_cast<void>(model.forgotten.parameters());
      }
      const Warnings warnings;
      model(randn({2, 4}));
      sum(model(randn({2, 4}))).backward();
      ASSERT_EQ(warnings.texts.size(), way == kTied && !arena ? 0u : 1u) << way << arena;
      if (!warnings.texts.empty()) {
        EXPECT_NE(warnings.texts[0].find("Linear (weight [4, 4], bias [4])"), std::string::npos);
      }
    }
  }
}

// A leaf may outlive its module.
TEST(UnregisteredModule, AParameterOfADestroyedModuleIsATensor) {
  auto gone = std::make_unique<Linear>(LinearOptions{.in = 4, .out = 4});
  const Tensor weight = gone->weight;
  gone.reset();
  struct Uses : Module {
    explicit Uses(const Tensor& w) : w(w) {}
    Tensor forward(const Tensor& x) override { return linear(x, w); }
    Tensor w;
  } model(weight);
  const Warnings warnings;
  sum(model(randn({2, 4}))).backward();
  EXPECT_TRUE(warnings.texts.empty());
  EXPECT_TRUE(weight.grad().defined());
}

TEST(UnregisteredModule, ATeacherWithoutGradientsIsMeant) {
  class Student : public Module {
   public:
    explicit Student(Net& teacher) : teacher_(teacher) { register_module("fc", fc); }
    Tensor forward(const Tensor& x) override {
      const NoGradGuard guard;
      return teacher_(x);
    }
    Linear fc{{.in = 4, .out = 4}};

   private:
    Net& teacher_;
  };
  Net teacher;
  Student student(teacher);
  const Warnings warnings;
  student(randn({2, 4}));
  EXPECT_TRUE(warnings.texts.empty());
}

TEST(UnregisteredModule, ADropoutThatKeepsAllIsAFunction) {
  Dropout keeps({.p = 0});
  Outer outer(keeps);
  outer.eval();
  const Warnings warnings;
  outer(randn({2, 4}));
  EXPECT_TRUE(warnings.texts.empty());
}

TEST(UnregisteredModule, ADropoutThatDoesNotFollowTheMode) {
  Dropout forgotten({.p = 0.5});
  Outer outer(forgotten);
  const Warnings warnings;
  outer(randn({2, 4}));
  EXPECT_TRUE(warnings.texts.empty()) << "in training it does what it should";
  outer.eval();
  outer(randn({2, 4}));
  outer(randn({2, 4}));
  ASSERT_EQ(warnings.texts.size(), 1u);
  EXPECT_NE(warnings.texts[0].find("stays in training mode"), std::string::npos)
      << warnings.texts[0];
}

TEST(UnregisteredModule, NoFalseAlarms) {
  const Warnings warnings;
  const Tensor x = randn({2, 4});
  Net registered;
  Outer whole(registered, true);
  whole(x);
  whole.first(x);  // a part by itself
  registered(x);   // outside of any forward
  ReLU function;   // without state
  Outer calls(function);
  calls(x);
  calls.eval();
  calls(x);
  Net teacher;  // frozen: it shall not be trained
  teacher.freeze();
  Outer student(teacher);
  student(x);
  Net tied;  // what it has is trained and saved by the other
  Outer holder(tied);
  tied.fc.weight = holder.first.weight;
  tied.fc.bias = holder.first.bias;
  holder(x);
  Net meant;
  meant.allow_unregistered();
  Outer allowed(meant);
  allowed(x);
  Outer deeper(meant.fc);
  deeper(x);
  Net again;  // runs once more in backward
  Outer recomputes(again, true);
  Tensor leaf = x.detach().require_grad();
  sum(recompute([&](const Tensor& t) { return recomputes(t); }, leaf)).backward();
  EXPECT_TRUE(warnings.texts.empty()) << warnings.texts[0];
}

// After an exception no state is left.
TEST(UnregisteredModule, AnErrorEndsTheForward) {
  Net net;
  Outer outer(net, true);
  EXPECT_THROW(outer(randn({2, 5})), Error);
  Net other;
  const Warnings warnings;
  other(randn({2, 4}));
  EXPECT_TRUE(warnings.texts.empty()) << warnings.texts[0];
}

}  // namespace
}  // namespace binade::nn::unregistered_test
