// SGD, Adam and AdamW against their formulas in double, step by step; groups, skipping, state.
#include <binade/optim/adamw.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/optim/parameters.h>

#include <cmath>

#include <tests/support/error_of.h>

namespace binade::optim::optimizer_test {
namespace {

struct Reference {  // of one parameter
  std::vector<double> p, m, v, top;
  int64_t updates = 0;
};

void sgd(Reference& r, const std::vector<double>& gradient, const SGDOptions& o) {
  r.m.resize(r.p.size());
  const bool first = r.updates++ == 0;
  for (size_t i = 0; i < r.p.size(); ++i) {
    double g = gradient[i] + o.weight_decay * r.p[i];
    if (o.momentum != 0) {
      r.m[i] = first ? g : o.momentum * r.m[i] + (1 - o.dampening) * g;
      g = o.nesterov ? g + o.momentum * r.m[i] : r.m[i];
    }
    r.p[i] -= o.lr * g;
  }
}

void adam(Reference& r, const std::vector<double>& gradient, const AdamWOptions& o,
          bool decoupled) {
  for (auto* state : {&r.m, &r.v, &r.top}) {
    state->resize(r.p.size());
  }
  const auto t = static_cast<double>(++r.updates);
  for (size_t i = 0; i < r.p.size(); ++i) {
    double g = gradient[i];
    if (decoupled) {
      r.p[i] *= 1 - o.lr * o.weight_decay;
    } else {
      g += o.weight_decay * r.p[i];
    }
    r.m[i] = o.betas[0] * r.m[i] + (1 - o.betas[0]) * g;
    r.v[i] = o.betas[1] * r.v[i] + (1 - o.betas[1]) * g * g;
    r.top[i] = std::max(r.top[i], r.v[i]);
    const double v = (o.amsgrad ? r.top[i] : r.v[i]) / (1 - std::pow(o.betas[1], t));
    r.p[i] -= o.lr * (r.m[i] / (1 - std::pow(o.betas[0], t))) / (std::sqrt(v) + o.eps);
  }
}

const std::vector<ParameterSpec> kMixedBag = {{"conv", {5, 3, 3, 3}, DType::f64, false, true},
                                              {"bias", {7}, DType::f64, true},
                                              {"empty", {0}, DType::f64},
                                              {"scalar", {}, DType::f64},
                                              {"matrix", {128, 3}, DType::f64}};

template <class Step>
void follow(Optimizer& optimizer, const TestParameters& parameters, Step step) {
  std::vector<Reference> references;
  for (const Parameter& parameter : parameters.list) {
    references.push_back({values_of(parameter.value), {}, {}, {}});
  }
  for (int t = 0; t < 7; ++t) {
    for (size_t i = 0; i < parameters.list.size(); ++i) {
      if (t == 2 && i == 1) {
        continue;  // a step without this parameter's gradient
      }
      const double scale = t % 2 ? 1024 : 1;
      const Tensor g = randn(parameters.list[i].value.sizes(), DType::f64);
      parameters.set_gradient(i, g, scale);
      step(references[i], values_of(g));
    }
    ASSERT_EQ(optimizer.step(), StepOutcome::applied);
    for (size_t i = 0; i < parameters.list.size(); ++i) {
      const std::vector<double> got = values_of(parameters.list[i].value);
      for (size_t k = 0; k < got.size(); ++k) {
        ASSERT_NEAR(got[k], references[i].p[k], 1e-12 * (1 + std::abs(got[k])))
            << parameters.list[i].name << " step " << t;
      }
      EXPECT_FALSE(parameters.list[i].leaf().has_grad);
    }
  }
  EXPECT_EQ(optimizer.step_count(), 7);
}

TEST(SGD, FollowsTheFormula) {
  for (const SGDOptions& options :
       {SGDOptions{.lr = 0.1}, SGDOptions{.lr = 0.05, .momentum = 0.9},
        SGDOptions{.lr = 0.05, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.1},
        SGDOptions{.lr = 0.05, .momentum = 0.8, .weight_decay = 0.1, .nesterov = true}}) {
    const TestParameters parameters(kMixedBag);
    SGD optimizer(parameters.list, options);
    follow(optimizer, parameters,
           [&](Reference& r, const std::vector<double>& g) { sgd(r, g, options); });
  }
}

TEST(AdamW, FollowsTheFormula) {
  for (const AdamWOptions& options :
       {AdamWOptions{.lr = 0.01}, AdamWOptions{.lr = 0.1, .betas = {0.5, 0.9}, .eps = 1e-3},
        AdamWOptions{.lr = 0.01, .weight_decay = 0.3, .amsgrad = true},
        AdamWOptions{.lr = 0.01, .eps = 0}}) {
    const TestParameters parameters(kMixedBag);
    AdamW optimizer(parameters.list, options);
    follow(optimizer, parameters,
           [&](Reference& r, const std::vector<double>& g) { adam(r, g, options, true); });
  }
}

TEST(Adam, FollowsTheFormula) {
  const TestParameters parameters(kMixedBag);
  Adam optimizer(parameters.list, {.lr = 0.02, .weight_decay = 0.2});
  const AdamWOptions same{.lr = 0.02, .weight_decay = 0.2};
  follow(optimizer, parameters,
         [&](Reference& r, const std::vector<double>& g) { adam(r, g, same, false); });
}

TEST(Optimizer, GroupsHaveTheirOwnSettings) {
  const TestParameters parameters({{"a", {3}}, {"b", {3}}, {"c", {3}, DType::f32, true}});
  const auto only = [&](const std::string& name) {
    return parameters.list.filter([&](const Parameter& p) { return p.name == name; });
  };
  SGD optimizer({{only("a")}, {only("b"), 0.5, 0.0}, {only("c")}},
                {.lr = 0.1, .weight_decay = 1, .decay_norms_and_biases = false});
  EXPECT_EQ(optimizer.lr(0), 0.1);
  EXPECT_EQ(optimizer.lr(1), 0.5);
  std::vector<double> before;
  for (size_t i = 0; i < 3; ++i) {
    before.push_back(parameters.list[i].value.at(0));
    parameters.set_gradient(i, ones({3}));
  }
  ASSERT_EQ(optimizer.step(), StepOutcome::applied);
  EXPECT_NEAR(parameters.list[0].value.at(0), before[0] - 0.1 * (1 + before[0]), 1e-6);
  EXPECT_NEAR(parameters.list[1].value.at(0), before[1] - 0.5, 1e-6);
  EXPECT_NEAR(parameters.list[2].value.at(0), before[2] - 0.1, 1e-6);
}

// They are adjacent in memory and share everything but the decay.
TEST(Optimizer, ABiasBesideItsWeightDoesNotDecay) {
  const TestParameters parameters({{"w", {64}}, {"b", {64}, DType::f32, true}, {"v", {64}}});
  SGD optimizer(parameters.list, {.lr = 0.5, .weight_decay = 1, .decay_norms_and_biases = false});
  std::vector<double> before;
  for (size_t i = 0; i < 3; ++i) {
    before.push_back(parameters.list[i].value.at(63));
    parameters.set_gradient(i, zeros({64}));
  }
  ASSERT_EQ(optimizer.step(), StepOutcome::applied);
  EXPECT_NEAR(parameters.list[0].value.at(63), before[0] / 2, 1e-6);
  EXPECT_NEAR(parameters.list[1].value.at(63), before[1], 1e-6);
  EXPECT_NEAR(parameters.list[2].value.at(63), before[2] / 2, 1e-6);
}

TEST(Optimizer, DividesAndClipsTheTrueGradient) {
  const TestParameters parameters({{"a", {2}}, {"b", {1}}});
  SGD optimizer(parameters.list, {.lr = 1});
  parameters.set_gradient(0, from_values({6, 0}, {2}), 1);
  parameters.set_gradient(1, from_values({8}, {1}), 16);
  const double a = parameters.list[0].value.at(0), b = parameters.list[1].value.at(0);
  ASSERT_EQ(optimizer.step({.divisor = 2, .clip_norm = 2.5}), StepOutcome::applied);
  EXPECT_DOUBLE_EQ(optimizer.last_norm(), 5);
  EXPECT_NEAR(parameters.list[0].value.at(0), a - 1.5, 1e-5);
  EXPECT_NEAR(parameters.list[1].value.at(0), b - 2, 1e-5);
}

TEST(Optimizer, TakesAGradientThatLiesOutsideTheArena) {  // as a recorded backward leaves it
  const TestParameters parameters({{"a", {2}}, {"b", {2}}});
  SGD optimizer(parameters.list, {.lr = 1});
  const std::vector<double> before = values_of(parameters.list[1].value);
  parameters.set_gradient(0, zeros({2}));
  parameters.set_gradient(1, zeros({2}));
  parameters.list[1].leaf().buffer = full({2}, 3, DType::f32, test_device());
  ASSERT_EQ(optimizer.step(), StepOutcome::applied);
  EXPECT_NEAR(parameters.list[1].value.at(1), before[1] - 3, 1e-6);
}

TEST(Optimizer, AccumulatingKeepsGradients) {
  const TestParameters parameters({{"a", {2}}});
  SGD optimizer(parameters.list, {.lr = 1});
  parameters.set_gradient(0, ones({2}));
  const std::vector<double> before = values_of(parameters.list[0].value);
  EXPECT_EQ(optimizer.step({.accumulating = true}), StepOutcome::accumulating);
  EXPECT_TRUE(parameters.list[0].leaf().has_grad);
  EXPECT_EQ(values_of(parameters.list[0].value), before);
  EXPECT_EQ(optimizer.step_count(), 0);
}

TEST(Optimizer, NonFiniteGradientIsAppliedUnlessChecked) {
  const TestParameters parameters({{"a", {2}}});
  SGD optimizer(parameters.list, {.lr = 1});
  const std::vector<double> before = values_of(parameters.list[0].value);
  parameters.set_gradient(0, from_values({INFINITY, 1}, {2}));
  EXPECT_EQ(optimizer.first_non_finite(), "a");
  EXPECT_EQ(optimizer.step({.check_finite = true}), StepOutcome::overflow);
  EXPECT_EQ(values_of(parameters.list[0].value), before);
  EXPECT_FALSE(parameters.list[0].leaf().has_grad);
  EXPECT_EQ(optimizer.step_count(), 0) << "a skipped step does not count";
  parameters.set_gradient(0, from_values({INFINITY, 1}, {2}));
  EXPECT_EQ(optimizer.step(), StepOutcome::applied);
  EXPECT_EQ(optimizer.step_count(), 1);
  EXPECT_EQ(parameters.list[0].value.at(0), -INFINITY);
  EXPECT_NEAR(parameters.list[0].value.at(1), before[1] - 1, 1e-6);
}

TEST(Optimizer, StateRoundTripContinuesBitIdentically) {
  const std::vector<ParameterSpec> specs = {{"w", {4, 3, 3, 3}, DType::f16, false, true},
                                            {"norm", {5}, DType::f32, true}};
  manual_seed(1);
  const TestParameters first(specs, true), second(specs, true);
  AdamW a(first.list, {}), b(second.list, {});
  const auto run = [](const TestParameters& parameters, Optimizer& optimizer, uint64_t seed) {
    manual_seed(seed);
    for (size_t i = seed % 2; i < 2; ++i) {  // odd seeds leave the first parameter out
      parameters.set_gradient(i, randn(parameters.list[i].value.sizes()));
    }
    return optimizer.step();
  };
  for (uint64_t seed : {2, 3, 4}) {
    ASSERT_EQ(run(first, a, seed), StepOutcome::applied);
  }
  a.set_lr(0.25);
  EXPECT_EQ(a.state_scalars().at("updates.w"), 2);
  const NamedTensors state = a.state_tensors();
  EXPECT_EQ(state[0].first, "master.w");
  EXPECT_EQ(state[0].second.sizes(), (Dims{4, 3, 3, 3}));
  ASSERT_EQ(state.size(), 5u);
  NoGradGuard guard;
  for (size_t i = 0; i < 2; ++i) {
    second.list[i].value.copy_(first.list[i].value);
  }
  b.load_state(state, a.state_scalars());
  EXPECT_EQ(b.lr(), 0.25);
  for (uint64_t seed : {5, 6}) {
    ASSERT_EQ(run(first, a, seed), StepOutcome::applied);
    ASSERT_EQ(run(second, b, seed), StepOutcome::applied);
  }
  for (size_t s = 0; s < first.arena->segments().size(); ++s) {
    EXPECT_EQ(bytes_of(first.arena->segments()[s].values),
              bytes_of(second.arena->segments()[s].values));
  }
  EXPECT_EQ(bytes_of(first.arena->segments()[0].masters),
            bytes_of(second.arena->segments()[0].masters));
}

// Steps near the limits of 32 bits are counted on, and the corrections of Adam, which are 1 there,
// do not change.
TEST(OptimizerState, CountersDoNotWrap) {
  const std::vector<ParameterSpec> specs = {{"w", {7}}, {"late", {3}}};
  std::string expected;
  for (const double start : {1e9, 0x1p31 - 2, 0x1p32 - 2, 0x1p40}) {
    manual_seed(1);
    const TestParameters parameters(specs);
    AdamW adam(parameters.list, {});
    NamedScalars scalars = adam.state_scalars();
    scalars["step"] = start;
    scalars["updates.late"] = start - 1;
    adam.load_state(adam.state_tensors(), scalars);
    for (int step = 0; step < 4; ++step) {
      for (size_t i = 0; i < specs.size(); ++i) {
        parameters.set_gradient(i, randn(parameters.list[i].value.sizes()));
      }
      ASSERT_EQ(adam.step(), StepOutcome::applied);
    }
    EXPECT_EQ(adam.step_count(), static_cast<int64_t>(start) + 4);
    EXPECT_EQ(adam.state_scalars().at("updates.late"), start + 3);
    const std::string bytes = bytes_of(parameters.arena->segments()[0].values);
    expected = expected.empty() ? bytes : expected;
    EXPECT_EQ(bytes, expected) << start;
  }
}

TEST(Optimizer, LoadStateIsAllOrNothing) {
  const TestParameters parameters({{"a", {2}}, {"b", {3}}});
  AdamW optimizer(parameters.list, {});
  NamedTensors state = optimizer.state_tensors();
  state[0].second = ones({2});
  state[1].first = "nonsense";
  state[2].second = ones({4});
  const std::string error =
      error_of([&] { optimizer.load_state(state, optimizer.state_scalars()); });
  EXPECT_NE(error.find("1 missing: exp_avg_sq.a"), std::string::npos) << error;
  EXPECT_NE(error.find("1 unexpected: nonsense"), std::string::npos) << error;
  EXPECT_NE(error.find("exp_avg.b has [4], expected [3]"), std::string::npos) << error;
  EXPECT_EQ(optimizer.state_tensors()[0].second.at(0), 0);
  NamedScalars scalars = optimizer.state_scalars();
  scalars["step"] = 1.5;
  scalars["other"] = 0;
  NamedTensors good = optimizer.state_tensors();
  good[0].second = ones({2});
  const std::string numbers = error_of([&] { optimizer.load_state(good, scalars); });
  EXPECT_NE(numbers.find("step, other"), std::string::npos) << numbers;
  EXPECT_EQ(optimizer.state_tensors()[0].second.at(0), 0);
}

TEST(Optimizer, RefusesSettingsThatMakeNoSense) {
  const TestParameters parameters({{"a", {2}}});
  const auto& list = parameters.list;
  EXPECT_THROW(SGD(list, {.lr = -0.1}), Error);
  EXPECT_THROW(SGD(list, {.lr = 0.1, .nesterov = true}), Error);
  EXPECT_THROW(Adam(list, {.betas = {1.0, 0.9}}), Error);
  EXPECT_THROW(AdamW(list, {.weight_decay = -1}), Error);
  EXPECT_THROW(SGD(ParameterList(), {}), Error);
  EXPECT_FALSE(parameters.arena->has_optimizer());
  EXPECT_THROW(SGD({{list}, {list}}, {}), Error);
  SGD optimizer(list, {});
  EXPECT_TRUE(parameters.arena->has_optimizer());
  {
    const SGD second(list, {});
    EXPECT_EQ(parameters.arena->optimizers, 2);
  }
  EXPECT_EQ(parameters.arena->optimizers, 1);
  EXPECT_NE(error_of([&] { (void)optimizer.step(); }).find("no parameter has a gradient"),
            std::string::npos);
  EXPECT_THROW((void)optimizer.step({.divisor = 0}), Error);
  EXPECT_THROW(optimizer.set_lr(NAN), Error);
  EXPECT_THROW(optimizer.set_lr(1, 0.1), Error);
  EXPECT_THROW(optimizer.lr(1), Error);
}

}  // namespace
}  // namespace binade::optim::optimizer_test
