// Updates of f16 and bf16 weights without masters: what nearest rounding loses, stochastic rounding
// and compensation keep; states, resume, ranges and wrong use.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/optim/adagrad.h>
#include <binade/optim/adamw.h>
#include <binade/optim/lamb.h>
#include <binade/optim/lars.h>
#include <binade/optim/nadam.h>
#include <binade/optim/radam.h>
#include <binade/optim/rmsprop.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>

#include <tests/optim/parameters.h>

namespace binade::optim::low_updates_test {
namespace {

using OptimizerPtr = std::unique_ptr<Optimizer>;

OptimizerPtr make_low(const std::string& name, const ParameterList& list, double lr) {
  if (name == "sgd") {
    return std::make_unique<SGD>(list, SGDOptions{.lr = lr, .momentum = 0.5});
  }
  if (name == "adamw") {
    return std::make_unique<AdamW>(list, AdamWOptions{.lr = lr});
  }
  if (name == "rmsprop") {
    return std::make_unique<RMSprop>(list, RMSpropOptions{.lr = lr});
  }
  if (name == "adagrad") {
    return std::make_unique<Adagrad>(list, AdagradOptions{.lr = lr});
  }
  if (name == "nadam") {
    return std::make_unique<NAdam>(list, NAdamOptions{.lr = lr});
  }
  if (name == "radam") {
    return std::make_unique<RAdam>(list, RAdamOptions{.lr = lr});
  }
  if (name == "lamb") {
    return std::make_unique<LAMB>(list, LAMBOptions{.lr = lr});
  }
  return std::make_unique<LARS>(list, LARSOptions{.lr = lr});
}

struct LowModel {
  TestParameters owner;
  // More than a block of elements, and an odd size.
  explicit LowModel(DType low)
      : owner((manual_seed(3),
               std::vector<ParameterSpec>{{.name = "weight", .sizes = {300, 37}, .dtype = low},
                                          {.name = "bias", .sizes = {301}, .dtype = low}})) {
    const NoGradGuard guard;
    for (const Parameter& parameter : owner.list) {
      Tensor value = parameter.value;
      value.copy_(add(rand(value.sizes()), 1).to(value.dtype()).to(value.device()));
    }
  }
  const ParameterList& parameters() const { return owner.list; }
  void backward_of(double value) {
    for (const Parameter& parameter : parameters()) {
      Tensor grad =
          full(parameter.value.sizes(), value, parameter.value.dtype(), parameter.value.device());
      backward(mul(parameter.value, 1), grad);
    }
  }
  double mean_weight() { return mean(cast(parameters()[0].value.to(Device{}), DType::f64)).item(); }
  std::vector<double> values() {
    const NoGradGuard guard;
    std::vector<double> all;
    for (const Parameter& parameter : parameters()) {
      const Tensor host = cast(parameter.value.to(Device{}), DType::f64).contiguous();
      all.insert(all.end(), host.data<double>(), host.data<double>() + host.numel());
    }
    return all;
  }
};

// The mean of the compensation of the weights; 0 without one.
double mean_compensation(const Optimizer& optimizer) {
  const NoGradGuard guard;
  for (const auto& [name, state] : optimizer.state_tensors()) {
    if (name == "compensation.weight") {
      return mean(cast(state.to(Device{}), DType::f64)).item();
    }
  }
  return 0;
}

class LowUpdatesOf : public testing::TestWithParam<std::tuple<const char*, DType>> {};

// Steps of 1/40 of a unit of the weights: nearest rounding loses every one of them.
TEST_P(LowUpdatesOf, SmallStepsAreLostByNearestAlone) {
  const auto [name, low] = GetParam();
  constexpr int kSteps = 40;
  const double unit = low == DType::f16 ? 0x1p-10 : 0x1p-7;
  std::map<LowUpdates, double> moved;
  for (const LowUpdates how :
       {LowUpdates::nearest, LowUpdates::stochastic, LowUpdates::compensated}) {
    LowModel model(low);
    double lr = unit / 40;
    if (std::string(name) == "adagrad") {
      lr = unit / 8;  // its steps shrink as the root of their number
    } else if (std::string(name) == "lamb") {
      lr /= 1.5;  // relative to the weights, of 1.5
    } else if (std::string(name) == "lars") {
      lr /= 4 * 1.5 * 0.001;  // the same with its coefficient, and momentum makes steps larger
    }
    const OptimizerPtr optimizer = make_low(name, model.parameters(), lr);
    optimizer->set_low_updates(how, 5);
    const double before = model.mean_weight();
    for (int step = 0; step < kSteps; ++step) {
      model.backward_of(1);
      (void)optimizer->step();
    }
    moved[how] = before - model.mean_weight() - mean_compensation(*optimizer);
  }
  EXPECT_EQ(moved[LowUpdates::nearest], 0) << name;
  EXPECT_GT(moved[LowUpdates::stochastic], 0.1 * unit) << name;
  EXPECT_NEAR(moved[LowUpdates::stochastic] / moved[LowUpdates::compensated], 1, 0.1) << name;
}

TEST_P(LowUpdatesOf, ResumeBitForBit) {
  const auto [name, low] = GetParam();
  for (const LowUpdates how : {LowUpdates::stochastic, LowUpdates::compensated}) {
    LowModel whole(low), first(low), second(low);
    const double lr = low == DType::f16 ? 1e-4 : 1e-3;
    const OptimizerPtr a = make_low(name, whole.parameters(), lr);
    a->set_low_updates(how, 9);
    const OptimizerPtr b = make_low(name, first.parameters(), lr);
    b->set_low_updates(how, 9);
    for (int step = 0; step < 6; ++step) {
      whole.backward_of(1 + step);
      (void)a->step();
      if (step < 3) {
        first.backward_of(1 + step);
        (void)b->step();
      }
    }
    const OptimizerPtr c = make_low(name, second.parameters(), lr);
    c->set_low_updates(how, 9);
    {
      const NoGradGuard guard;
      for (size_t i = 0; i < second.parameters().size(); ++i) {
        Tensor value = second.parameters()[i].value;
        value.copy_(first.parameters()[i].value);
      }
    }
    c->load_state(b->state_tensors(), b->state_scalars());
    for (int step = 3; step < 6; ++step) {
      second.backward_of(1 + step);
      (void)c->step();
    }
    EXPECT_EQ(second.values(), whole.values()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, LowUpdatesOf,
                         testing::Combine(testing::Values("sgd", "adamw", "rmsprop", "adagrad",
                                                          "nadam", "radam", "lamb", "lars"),
                                          testing::Values(DType::f16, DType::bf16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  to_string(std::get<1>(info.param));
                         });

TEST(LowUpdates, CompensationHoldsWhatRoundingTook) {
  LowModel model(DType::bf16);
  SGD sgd(model.parameters(), {.lr = 0x1p-12});
  sgd.set_low_updates(LowUpdates::compensated);
  const std::vector<double> before = model.values();
  model.backward_of(1);
  (void)sgd.step();
  const std::vector<double> after = model.values();
  const NamedTensors states = sgd.state_tensors();
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].first, "compensation.weight");
  EXPECT_EQ(states[0].second.dtype(), DType::bf16);
  EXPECT_EQ(sgd.state_bytes(), model.parameters().arena()->segments()[0].numel * 2);
  const Tensor rest = cast(states[0].second.to(Device{}), DType::f64).contiguous();
  for (int64_t i = 0; i < rest.numel(); ++i) {
    const auto at = static_cast<size_t>(i);
    ASSERT_EQ(after[at] + rest.data<double>()[i], before[at] - 0x1p-12) << i;
  }
}

TEST(LowUpdates, SeedsDiffer) {
  std::vector<std::vector<double>> runs;
  for (const uint64_t seed : {1, 1, 2}) {
    LowModel model(DType::bf16);
    SGD sgd(model.parameters(), {.lr = 1e-3});
    sgd.set_low_updates(LowUpdates::stochastic, seed);
    model.backward_of(1);
    (void)sgd.step();
    runs.push_back(model.values());
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

std::string error_of_low(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LowUpdates, WrongUseIsAnError) {
  TestParameters wide({{.name = "weight", .sizes = {3, 2}}});
  SGD full(wide.list, {.lr = 1});
  EXPECT_NE(error_of_low([&] {
              full.set_low_updates(LowUpdates::stochastic);
            }).find("expected f16 or bf16 without masters"),
            std::string::npos);
  full.set_low_updates(LowUpdates::nearest);
  LowModel model(DType::bf16);
  SGD late(model.parameters(), {.lr = 1});
  model.backward_of(1);
  (void)late.step();
  EXPECT_NE(error_of_low([&] {
              late.set_low_updates(LowUpdates::compensated);
            }).find("expected one before its first step"),
            std::string::npos);
  LowModel other(DType::bf16);
  SGD compensated(other.parameters(), {.lr = 1});
  compensated.set_low_updates(LowUpdates::compensated);
  EXPECT_NE(error_of_low([&] {
              compensated.load_state(late.state_tensors(), late.state_scalars());
            }).find("compensation.weight"),
            std::string::npos);
}

}  // namespace
}  // namespace binade::optim::low_updates_test
