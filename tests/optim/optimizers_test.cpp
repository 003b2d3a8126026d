// RMSprop, Adagrad, NAdam, RAdam, LAMB and LARS: state, settings; momentum of all optimizers. Their
// formulas are in optimizer_formulas_test.cpp.
#include <binade/optim/adagrad.h>
#include <binade/optim/adamw.h>
#include <binade/optim/lamb.h>
#include <binade/optim/lars.h>
#include <binade/optim/nadam.h>
#include <binade/optim/radam.h>
#include <binade/optim/rmsprop.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/optim/parameters.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>

namespace binade::optim::optimizers_test {
namespace {

using Maker = std::function<std::unique_ptr<Optimizer>(const ParameterList&)>;

std::map<std::string, Maker> makers() {
  return {{"rmsprop",
           [](const ParameterList& list) {
             return std::make_unique<RMSprop>(list,
                                              RMSpropOptions{.momentum = 0.9, .centered = true});
           }},
          {"adagrad",
           [](const ParameterList& list) {
             return std::make_unique<Adagrad>(
                 list, AdagradOptions{.lr_decay = 0.1, .initial_accumulator_value = 0.25});
           }},
          {"nadam",
           [](const ParameterList& list) {
             return std::make_unique<NAdam>(list, NAdamOptions{.weight_decay = 0.1});
           }},
          {"radam",
           [](const ParameterList& list) {
             return std::make_unique<RAdam>(list, RAdamOptions{.betas = {0.9, 0.8}});
           }},
          {"lamb",
           [](const ParameterList& list) {
             return std::make_unique<LAMB>(list, LAMBOptions{.lr = 0.01});
           }},
          {"lars",
           [](const ParameterList& list) { return std::make_unique<LARS>(list, LARSOptions{}); }}};
}

TEST(Optimizers, StateRoundTripContinuesBitIdentically) {
  const std::vector<ParameterSpec> specs = {{"w", {40, 30, 3, 3}, DType::f16, false, true},
                                            {"norm", {5}, DType::f32, true}};
  const std::map<std::string, std::set<std::string>> names = {
      {"rmsprop", {"grad_avg", "momentum_buffer", "square_avg"}},
      {"adagrad", {"sum"}},
      {"nadam", {"exp_avg", "exp_avg_sq"}},
      {"radam", {"exp_avg", "exp_avg_sq"}},
      {"lamb", {"exp_avg", "exp_avg_sq"}},
      {"lars", {"momentum_buffer"}}};
  for (const auto& [name, make] : makers()) {
    SCOPED_TRACE(name);
    manual_seed(1);
    const TestParameters first(specs, true), second(specs, true);
    const std::unique_ptr<Optimizer> a = make(first.list), b = make(second.list);
    const auto run = [](const TestParameters& parameters, Optimizer& optimizer, uint64_t seed) {
      manual_seed(seed);
      for (size_t i = seed % 2; i < 2; ++i) {  // odd seeds leave the first parameter out
        parameters.set_gradient(i, randn(parameters.list[i].value.sizes()));
      }
      ASSERT_EQ(optimizer.step(), StepOutcome::applied);
    };
    for (uint64_t seed : {2, 3, 4}) {
      run(first, *a, seed);
    }
    std::set<std::string> found;
    for (const auto& [key, tensor] : a->state_tensors()) {
      if (key.ends_with(".norm")) {
        found.insert(key.substr(0, key.size() - 5));
      }
    }
    EXPECT_EQ(found, names.at(name));
    NoGradGuard guard;
    for (size_t i = 0; i < 2; ++i) {
      second.list[i].value.copy_(first.list[i].value);
    }
    b->load_state(a->state_tensors(), a->state_scalars());
    for (uint64_t seed : {5, 6}) {
      run(first, *a, seed);
      run(second, *b, seed);
    }
    for (size_t s = 0; s < first.arena->segments().size(); ++s) {
      EXPECT_EQ(bytes_of(first.arena->segments()[s].values),
                bytes_of(second.arena->segments()[s].values));
    }
    EXPECT_EQ(bytes_of(first.arena->segments()[0].masters),
              bytes_of(second.arena->segments()[0].masters));
  }
}

// A parameter's update has the same bits for all neighbours in the arena.
TEST(Optimizers, LayerwiseStepsOfAParameterDoNotDependOnTheOthers) {
  const std::vector<ParameterSpec> specs = {{"a", {128}}, {"b", {97, 130}}, {"c", {256}}};
  for (const auto& name : {"lamb", "lars"}) {
    manual_seed(3);
    const TestParameters all(specs);
    const Tensor start = from_values(values_of(all.list[1].value), specs[1].sizes);
    const TestParameters alone({specs[1]});
    {
      NoGradGuard guard;
      alone.list[0].value.copy_(start);
    }
    const auto both = makers().at(name)(all.list), one = makers().at(name)(alone.list);
    for (uint64_t t = 0; t < 3; ++t) {
      for (size_t i = 0; i < 3; ++i) {
        manual_seed(10 * t + i);
        const Tensor g = randn(all.list[i].value.sizes());
        all.set_gradient(i, g);
        if (i == 1) {
          alone.set_gradient(0, g);
        }
      }
      ASSERT_EQ(both->step(), StepOutcome::applied);
      ASSERT_EQ(one->step(), StepOutcome::applied);
    }
    EXPECT_EQ(values_of(all.list[1].value), values_of(alone.list[0].value)) << name;
    const auto ratios = dynamic_cast<LayerwiseOptimizer&>(*both).trust_ratios();
    EXPECT_EQ(ratios.size(), 3u);
    EXPECT_EQ(ratios.at("b"), dynamic_cast<LayerwiseOptimizer&>(*one).trust_ratios().at("b"));
    EXPECT_NE(ratios.at("b"), ratios.at("a"));
  }
}

TEST(Optimizers, MomentumCanBeSet) {
  const TestParameters parameters({{"a", {2}}, {"b", {2}}});
  const auto only = [&](const std::string& name) {
    return parameters.list.filter([&](const Parameter& p) { return p.name == name; });
  };
  SGD sgd({{.parameters = only("a"), .momentum = 0.25}, {.parameters = only("b")}},
          {.lr = 1, .momentum = 0.5});
  EXPECT_EQ(sgd.momentum(0), 0.25);
  EXPECT_EQ(sgd.momentum(1), 0.5);
  const std::vector<double> before = values_of(parameters.list[0].value);
  for (int t = 0; t < 2; ++t) {
    parameters.set_gradient(0, ones({2}));
    parameters.set_gradient(1, ones({2}));
    ASSERT_EQ(sgd.step(), StepOutcome::applied);
    sgd.set_momentum(0, 0.75);
  }
  EXPECT_NEAR(values_of(parameters.list[0].value)[0], before[0] - 1 - 1.75, 1e-6);
  EXPECT_EQ(sgd.state_scalars().at("momentum.0"), 0.75);
  EXPECT_EQ(sgd.state_scalars().at("momentum.1"), 0.5);
  NamedScalars scalars = sgd.state_scalars();
  scalars["momentum.1"] = 0.125;
  sgd.load_state(sgd.state_tensors(), scalars);
  EXPECT_EQ(sgd.momentum(1), 0.125);
  EXPECT_EQ(AdamW(parameters.list, {.betas = {0.8, 0.99}}).momentum(), 0.8);
  EXPECT_THROW(sgd.set_momentum(1.0), Error);
  Adagrad adagrad(parameters.list);
  EXPECT_FALSE(adagrad.has_momentum());
  EXPECT_THROW(adagrad.set_momentum(0.5), Error);
  EXPECT_THROW(SGD(parameters.list, {}).momentum(), Error);
  EXPECT_THROW(SGD({{.parameters = only("a"), .momentum = 0.5}}, {}), Error);
}

// "b" in a group with its own options moves as it does alone under an optimizer with these options,
// and "a" as without the group.
template <class O>
void expect_own_options(const ParamGroup& group, const typename O::Options& base,
                        const typename O::Options& merged) {
  const std::vector<ParameterSpec> specs = {{"a", {5}}, {"b", {7}, DType::f32, true}};
  const auto make = [&] {
    manual_seed(8);
    return TestParameters(specs);
  };
  const TestParameters grouped = make(), plain = make(), own = make();
  const auto only = [&](const std::string& name) {
    return grouped.list.filter([&](const Parameter& p) { return p.name == name; });
  };
  ParamGroup second = group;
  second.parameters = only("b");
  O optimizer({{.parameters = only("a")}, second}, base), of_base(plain.list, base),
      of_merged(own.list, merged);
  for (int t = 0; t < 4; ++t) {
    for (size_t i = 0; i < 2; ++i) {
      const Tensor gradient = on_test_device(randn({i == 0 ? 5 : 7}));
      for (const TestParameters* parameters : {&grouped, &plain, &own}) {
        parameters->set_gradient(i, gradient);
      }
    }
    ASSERT_EQ(optimizer.step(), StepOutcome::applied);
    ASSERT_EQ(of_base.step(), StepOutcome::applied);
    ASSERT_EQ(of_merged.step(), StepOutcome::applied);
  }
  EXPECT_EQ(values_of(grouped.list[0].value), values_of(plain.list[0].value));
  EXPECT_EQ(values_of(grouped.list[1].value), values_of(own.list[1].value));
  EXPECT_NE(values_of(grouped.list[1].value), values_of(plain.list[1].value));
}

TEST(Optimizers, GroupsHaveEveryOption) {
  const SGDOptions sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1};
  expect_own_options<SGD>({.nesterov = true}, sgd,
                          {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
  expect_own_options<SGD>({.dampening = 0.5}, sgd,
                          {.lr = 0.1, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.1});
  expect_own_options<SGD>({.maximize = true}, sgd,
                          {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .maximize = true});
  expect_own_options<SGD>(
      {.decay_norms_and_biases = false}, sgd,
      {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .decay_norms_and_biases = false});
  expect_own_options<AdamW>({.lr = 0.2, .betas = {{0.5, 0.7}}}, {},
                            {.lr = 0.2, .betas = {0.5, 0.7}});
  expect_own_options<AdamW>({.eps = 0.1}, {}, {.eps = 0.1});
  expect_own_options<AdamW>({.amsgrad = true, .maximize = true}, {.betas = {0.9, 0.5}},
                            {.betas = {0.9, 0.5}, .amsgrad = true, .maximize = true});
  expect_own_options<Adam>({.betas = {{0.1, 0.2}}}, {}, {.betas = {0.1, 0.2}});
  expect_own_options<RMSprop>({.alpha = 0.5, .centered = true}, {.momentum = 0.5},
                              {.alpha = 0.5, .momentum = 0.5, .centered = true});
  expect_own_options<Adagrad>({.lr_decay = 0.5, .initial_accumulator_value = 2}, {},
                              {.lr_decay = 0.5, .initial_accumulator_value = 2});
  expect_own_options<NAdam>({.betas = {{0.5, 0.6}}, .eps = 0.1}, {},
                            {.betas = {0.5, 0.6}, .eps = 0.1});
  expect_own_options<RAdam>({.lr = 0.5, .momentum = 0.5}, {}, {.lr = 0.5, .betas = {0.5, 0.999}});
  expect_own_options<LAMB>({.betas = {{0.5, 0.6}}, .eps = 0.1}, {},
                           {.betas = {0.5, 0.6}, .eps = 0.1});
  expect_own_options<LARS>({.eps = 0.1, .trust_coefficient = 0.5}, {},
                           {.trust_coefficient = 0.5, .eps = 0.1});
}

TEST(Optimizers, GroupsRefuseOptionsOfOthers) {
  const TestParameters parameters({{"a", {2}}});
  const auto error_of = [](const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const ParameterList& list = parameters.list;
  EXPECT_EQ(error_of([&] { SGD({{.parameters = list, .eps = 0.1}}, {}); }),
            "SGD: got a group with eps, an option that SGD does not have, expected one that it "
            "has; leave it out");
  EXPECT_EQ(
      error_of([&] { AdamW({{.parameters = list, .nesterov = true}}); }),
      "AdamW: got a group with nesterov, an option that AdamW does not have, expected one that it "
      "has; leave it out");
  EXPECT_EQ(error_of([&] { Adagrad({{.parameters = list, .momentum = 0.5}}); }),
            "Adagrad: got a group with momentum, an option that Adagrad does not have, expected "
            "one that it "
            "has; leave it out");
  EXPECT_EQ(error_of([&] {
              LARS({{.parameters = list, .betas = {{0.5, 0.5}}}});
            }),
            "LARS: got a group with betas, an option that LARS does not have, expected one that it "
            "has; leave it out");
  EXPECT_EQ(error_of([&] { SGD({{.parameters = list, .nesterov = true}}, {}); }),
            "SGD: got a group with nesterov and no momentum, expected a positive momentum");
  EXPECT_THROW(AdamW({{.parameters = list, .momentum = 0.5, .betas = {{0.5, 0.5}}}}), Error);
  EXPECT_THROW(AdamW({{.parameters = list, .betas = {{0.5, 1}}}}), Error);
  EXPECT_FALSE(parameters.arena->has_optimizer());
}

// A step along the gradient; the decay still shrinks.
TEST(Optimizers, MaximizeFollowsTheGradient) {
  const TestParameters parameters({{"a", {1}}});
  SGD optimizer(parameters.list, {.lr = 0.5, .weight_decay = 0.1, .maximize = true});
  const double before = values_of(parameters.list[0].value)[0];
  parameters.set_gradient(0, ones({1}), 4);  // the scale of a loss does not matter
  ASSERT_EQ(optimizer.step({.clip_norm = 0.5}), StepOutcome::applied);
  EXPECT_NEAR(values_of(parameters.list[0].value)[0], before + 0.5 * (0.5 - 0.1 * before), 1e-6);
  EXPECT_NEAR(optimizer.last_norm(), 1, 1e-6);
}

TEST(Optimizers, RefuseSettingsThatMakeNoSense) {
  const TestParameters parameters({{"a", {2}}});
  const auto& list = parameters.list;
  EXPECT_THROW(RMSprop(list, {.alpha = 1.5}), Error);
  EXPECT_THROW(RMSprop(list, {.eps = -1}), Error);
  EXPECT_THROW(RMSprop(list, {.momentum = -0.1}), Error);
  EXPECT_THROW(Adagrad(list, {.lr_decay = -1}), Error);
  EXPECT_THROW(Adagrad(list, {.initial_accumulator_value = -1}), Error);
  EXPECT_THROW(NAdam(list, {.betas = {0.9, 1}}), Error);
  EXPECT_THROW(NAdam(list, {.momentum_decay = -1}), Error);
  EXPECT_THROW(RAdam(list, {.betas = {-0.1, 0.9}}), Error);
  EXPECT_THROW(RAdam(list, {.eps = -1}), Error);
  EXPECT_THROW(LAMB(list, {.betas = {0.9, 1}}), Error);
  EXPECT_THROW(LARS(list, {.trust_coefficient = 0}), Error);
  EXPECT_THROW(LARS(list, {.lr = -1}), Error);
  EXPECT_FALSE(parameters.arena->has_optimizer());
}

}  // namespace
}  // namespace binade::optim::optimizers_test
