// Tests weights under `mixed` that the user changes in place. The f32 master follows, so neither a
// step nor a checkpoint reverts the change.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/init.h>
#include <binade/nn/models.h>
#include <binade/optim/adamw.h>
#include <binade/optim/loss_scaler.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>

#include <tests/kernels/support/test_device.h>
#include <cmath>
#include <limits>

namespace binade::nn::changed_weights_test {
namespace {

using kernels::test_device;

class Net : public Module {
 public:
  explicit Net(const Precision& precision = Precision::mixed(DType::f16)) {
    register_module("a", a);
    register_module("b", b);
    to(test_device(), precision);
  }
  Tensor forward(const Tensor& x) override { return b(relu(a(x))); }
  Linear a{{.in = 5, .out = 7}}, b{{.in = 7, .out = 3}};
};

std::vector<double> values_of(const Tensor& tensor) {
  const Tensor host = tensor.detach().to(Device{});
  std::vector<double> values;
  for (int64_t i = 0; i < host.numel(); ++i) {
    values.push_back(host.at(i));
  }
  return values;
}

std::vector<double> master_of(const optim::Optimizer& optimizer, const std::string& name) {
  for (const auto& [key, tensor] : optimizer.state_tensors()) {
    if (key == "master." + name) {
      return values_of(tensor);
    }
  }
  return {};
}

// Runs one step and returns the change of the weights: lr times the gradient.
std::vector<double> train_once(Net& net, optim::SGD& sgd, bool scaled) {
  const Tensor x = randn({4, 5}).to(test_device()), dy = randn({4, 3}).to(test_device());
  const Tensor loss = sum(net(x).to(DType::f32) * dy);
  if (!scaled) {
    loss.backward();
    std::vector<double> gradient = values_of(net.a.weight.grad());
    EXPECT_EQ(sgd.step(), StepOutcome::applied);
    return gradient;
  }
  optim::LossScaler scaler = optim::LossScaler::fixed(8);
  scaler.scale(loss).backward();
  std::vector<double> gradient = values_of(net.a.weight.grad());
  EXPECT_EQ(scaler.step(sgd), StepOutcome::applied);
  return gradient;
}

struct Change {
  const char* what;
  std::function<void(Net&)> apply;
};

std::vector<Change> changes() {
  const auto no_grad = [](auto f) {
    return [f](Net& net) {
      const NoGradGuard guard;
      f(net.a.weight);
    };
  };
  std::vector<Change> all = {
      {"init::constant", [](Net& net) { init::constant(net.a.weight, 5); }},
      {"init::xavier_uniform", [](Net& net) { init::xavier_uniform(net.a.weight); }},
      {"fill_", no_grad([](const Tensor& w) { w.fill_(-0.75); })},
      {"copy_ of f32 values", no_grad([](const Tensor& w) { w.copy_(randn(w.sizes())); })},
      {"a view", no_grad([](const Tensor& w) { slice(w, 0, 2, 4).fill_(3); })},
      {"a detached handle", [](Net& net) { net.a.weight.detach().fill_(0.1); }},
      {"a handle of parameters()", no_grad([](const Tensor& w) { w.copy_(w * 2); })},
  };
  if (test_device().is_cpu()) {
    all.push_back({"a write to data() and bump_version()", [](Net& net) {
                     net.a.weight.data<half>()[1] = half(7.f);
                     net.a.weight.bump_version();
                   }});
  }
  return all;
}

// Writes through the pointer of data<T>() need no bump_version(): elements that differ from their
// rounded masters count as written, at any time; all others keep the digits of their masters.
template <class Half>
void write_through_a_pointer(DType dtype) {
  manual_seed(5);
  Net net(Precision::mixed(dtype));
  optim::SGD sgd(net.parameters(), {.lr = 0.001});
  train_once(net, sgd, false);
  const std::vector<double> before = master_of(sgd, "a.weight"), other = master_of(sgd, "b.weight");
  Half* values = net.a.weight[2].template data<Half>();  // a part shares the memory
  EXPECT_EQ(static_cast<float>(values[0]), net.a.weight[2].at(0));
  sgd.set_lr(0);
  train_once(net, sgd, false);
  EXPECT_EQ(master_of(sgd, "a.weight"), before) << "it was only read";
  values[1] = Half(7.f);
  values[4] = Half(std::numeric_limits<float>::quiet_NaN());
  std::vector<double> expected = before, now = master_of(sgd, "a.weight");
  expected[11] = 7;
  EXPECT_TRUE(std::isnan(now[14]));
  now[14] = expected[14];
  EXPECT_EQ(now, expected) << "what a checkpoint holds";
  values[4] = Half(-0.5f);
  train_once(net, sgd, false);
  expected[14] = -0.5;
  EXPECT_EQ(master_of(sgd, "a.weight"), expected);
  EXPECT_EQ(net.a.weight[2].at(1), 7);
  EXPECT_EQ(net.a.weight[2].at(4), -0.5);
  EXPECT_EQ(master_of(sgd, "b.weight"), other);
  net.to_full_precision();
  EXPECT_EQ(net.a.weight[2].at(1), 7);
}

TEST(ChangedWeights, AWriteThroughAPointerMovesItsElements) {
  if (!test_device().is_cpu()) {
    GTEST_SKIP() << "data() is for the CPU";
  }
  write_through_a_pointer<half>(DType::f16);
  write_through_a_pointer<bfloat16>(DType::bf16);
}

TEST(ChangedWeights, AConstPointerIsNoWrite) {
  if (!test_device().is_cpu()) {
    GTEST_SKIP() << "data() is for the CPU";
  }
  Net net;
  EXPECT_EQ(static_cast<float>(net.a.weight.data<const half>()[3]), net.a.weight.at(3));
  EXPECT_FALSE(net.a.weight.handle()->storage->exposed);
  net.a.weight.detach().data<half>();
  EXPECT_TRUE(net.a.weight.handle()->storage->exposed);
}

TEST(ChangedWeights, AStepGoesOnFromThem) {
  for (const Change& change : changes()) {
    for (const bool scaled : {false, true}) {
      SCOPED_TRACE(text(change.what, scaled ? ", scaled" : ""));
      manual_seed(4);
      Net net;
      optim::SGD sgd(net.parameters(), {.lr = 0.001});
      train_once(net, sgd, scaled);
      const std::vector<double> untouched = master_of(sgd, "b.weight"),
                                reverted = values_of(net.a.weight);
      change.apply(net);
      const std::vector<double> changed = values_of(net.a.weight);
      ASSERT_NE(changed, reverted);
      EXPECT_EQ(master_of(sgd, "a.weight"), changed) << "what a checkpoint holds";
      EXPECT_EQ(master_of(sgd, "b.weight"), untouched) << "the others keep what they had";
      const std::vector<double> gradient = train_once(net, sgd, scaled);
      const std::vector<double> master = master_of(sgd, "a.weight"),
                                value = values_of(net.a.weight);
      for (size_t i = 0; i < master.size(); ++i) {
        EXPECT_NEAR(master[i], changed[i] - 0.001 * gradient[i], 1e-6) << i;
        EXPECT_NEAR(value[i], master[i], 0.001 * std::abs(master[i]) + 1e-7) << i;
      }
    }
  }
}

// Sets weights after to() and before the optimizer exists, then runs a step with learning rate 0.
TEST(ChangedWeights, SetBeforeTheOptimizer) {
  for (const DType low : {DType::f16, DType::bf16}) {
    Net net(Precision::mixed(low));
    init::constant(net.a.weight, 5);
    optim::AdamW adam(net.parameters(), {.lr = 0, .weight_decay = 0});
    sum(net(randn({2, 5}).to(test_device())).to(DType::f32)).backward();
    EXPECT_EQ(adam.step(), StepOutcome::applied);
    EXPECT_EQ(values_of(net.a.weight), std::vector<double>(35, 5));
  }
}

TEST(ChangedWeights, AreWhatFullPrecisionGoesOnWith) {
  Net net;
  optim::SGD sgd(net.parameters(), {.lr = 0.1});
  init::constant(net.a.weight, 5);
  net.to_full_precision();
  EXPECT_EQ(values_of(net.a.weight), std::vector<double>(35, 5));
}

TEST(ChangedWeights, AreWhatAConversionTakes) {
  Net net;
  init::constant(net.a.weight, 5);
  net.to(test_device(), Precision::mixed(DType::bf16));
  EXPECT_EQ(values_of(net.a.weight), std::vector<double>(35, 5));
  init::constant(net.b.bias, 0.5);
  net.to(DType::f32);
  EXPECT_EQ(values_of(net.b.bias), std::vector<double>(3, 0.5));
}

// Masters that agree with their weights are not rewritten, so no step rounds them.
TEST(ChangedWeights, LoadsAndStepsKeepWhatRoundingLoses) {
  manual_seed(6);
  Net net;
  const NamedTensors exact = {{"a.weight", randn({7, 5})},
                              {"a.bias", randn({7})},
                              {"b.weight", randn({3, 7})},
                              {"b.bias", randn({3})}};
  net.load_state(exact);
  optim::SGD sgd(net.parameters(), {.lr = 0});
  EXPECT_EQ(master_of(sgd, "a.weight"), values_of(exact[0].second));
  train_once(net, sgd, false);
  EXPECT_EQ(master_of(sgd, "a.weight"), values_of(exact[0].second));
  const NamedTensors saved = sgd.state_tensors();
  Net other;
  optim::SGD loaded(other.parameters(), {.lr = 0});
  loaded.load_state(saved, sgd.state_scalars());
  train_once(other, loaded, true);
  EXPECT_EQ(master_of(loaded, "b.weight"), values_of(exact[2].second));
}

// With masters, a very small tau moves an f16 network like an f32 network.
TEST(SoftUpdate, SmallStepsAddUpInTheMasters) {
  manual_seed(7);
  Net online, target;
  Net wide(Precision::full()), wide_target(Precision::full());
  const auto copy = [](Net& to, Net& from) { to.load_state(from.state()); };
  copy(wide, online);
  copy(wide_target, target);
  copy(target, wide_target);
  copy(online, wide);
  const std::vector<double> start = values_of(target.a.weight);
  for (int i = 0; i < 400; ++i) {
    target.soft_update(online, 0.0002);
    wide_target.soft_update(wide, 0.0002);
  }
  const std::vector<double> got = values_of(target.a.weight),
                            want = values_of(wide_target.a.weight);
  double moved = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 3e-4) << i;
    moved += std::abs(got[i] - start[i]);
  }
  EXPECT_GT(moved / static_cast<double>(got.size()), 5e-3);
  optim::SGD sgd(target.parameters(), {.lr = 0});
  const std::vector<double> master = master_of(sgd, "a.weight");
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(master[i], want[i], 1e-6) << i;
  }
}

TEST(SoftUpdate, BuffersExtremesAndErrors) {
  manual_seed(8);
  BatchNorm2d target({.channels = 3}), source({.channels = 3});
  source.running_mean.fill_(4);
  target.soft_update(source, 0.25);
  EXPECT_EQ(values_of(target.running_mean), (std::vector<double>{1, 1, 1}));
  target.soft_update(source, 1);
  EXPECT_EQ(values_of(target.running_mean), (std::vector<double>{4, 4, 4}));
  target.soft_update(source, 0);
  EXPECT_EQ(values_of(target.running_mean), (std::vector<double>{4, 4, 4}));
  for (const double tau : {-0.1, 1.1, double(NAN)}) {
    EXPECT_THROW(target.soft_update(source, tau), Error) << tau;
  }
  BatchNorm2d wider({.channels = 4});
  EXPECT_THROW(target.soft_update(wider, 0.5), Error);
  EXPECT_THROW(target.soft_update(Linear({.in = 3, .out = 3}), 0.5), Error);
}

}  // namespace
}  // namespace binade::nn::changed_weights_test
