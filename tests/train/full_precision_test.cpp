// to_full_precision() converts 16-bit parameters to f32 while an optimizer uses them.
#include <binade/binade.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>

namespace binade::full_precision_test {
namespace {

class Pair : public nn::Module {
 public:
  Pair()
      : first({.in = 5, .out = 4}), second({.in = 4, .out = 3}), norm({.normalized_shape = {4}}) {
    register_module("first", first);
    register_module("norm", norm);
    register_module("second", second);
  }
  Tensor forward(const Tensor& x) override {
    return second(norm(relu(first(x.to(first.weight.dtype())))));
  }
  nn::Linear first, second;
  nn::LayerNorm norm;
};

std::vector<double> numbers_of(const Tensor& t) {
  const Tensor host = t.to(Device{});
  std::vector<double> all;
  for (int64_t i = 0; i < host.numel(); ++i) {
    all.push_back(host.at(i));
  }
  return all;
}

std::vector<double> weights_of(const Pair& model) {
  std::vector<double> all;
  for (const auto& [name, tensor] : model.state()) {
    const std::vector<double> own = numbers_of(tensor);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

void train(Pair& model, optim::Optimizer& optimizer, int first, int steps) {
  for (int step = first; step < first + steps; ++step) {
    manual_seed(static_cast<uint64_t>(step));
    const Tensor x = randn({6, 5}).to(kernels::test_device());
    const Tensor y = model(x).to(DType::f32);
    mean(y * y).backward();
    (void)optimizer.step();
  }
}

Pair& prepared(Pair& model, const Precision& precision) {
  model.to(kernels::test_device(), precision);
  return model;
}

TEST(FullPrecision, TheMastersBecomeTheWeights) {
  for (DType low : {DType::f16, DType::bf16}) {
    manual_seed(1);
    Pair model;
    prepared(model, Precision::mixed(low));
    optim::AdamW adam(model.parameters(), {.lr = 0.01});
    train(model, adam, 0, 3);
    std::map<std::string, std::vector<double>> masters;
    for (const auto& [name, tensor] : adam.state_tensors()) {
      if (name.starts_with("master.")) {
        masters[name.substr(7)] = numbers_of(tensor);
      }
    }
    ASSERT_EQ(masters.size(), 4U);
    const Tensor held = model.first.weight;  // a handle that the user keeps
    model.to_full_precision();
    for (const auto& [name, tensor] : model.named_parameters()) {
      EXPECT_EQ(tensor.dtype(), DType::f32) << name;
      if (masters.contains(name)) {
        EXPECT_EQ(numbers_of(tensor), masters[name]) << name;
      }
    }
    EXPECT_EQ(held.dtype(), DType::f32);
    for (const auto& [name, tensor] : adam.state_tensors()) {
      EXPECT_FALSE(name.starts_with("master.")) << name;
    }
    EXPECT_EQ(model.precision(), Precision::full());
    // Training continues as in a model that was always f32 and has the same state.
    Pair twin;
    prepared(twin, Precision::full());
    optim::AdamW its(twin.parameters(), {.lr = 0.01});
    twin.load_state(model.state());
    its.load_state(adam.state_tensors(), adam.state_scalars());
    train(model, adam, 3, 3);
    train(twin, its, 3, 3);
    EXPECT_EQ(weights_of(model), weights_of(twin));
    EXPECT_EQ(numbers_of(held), numbers_of(model.first.weight));
  }
}

TEST(FullPrecision, WithoutMastersTheRoundedWeightsStay) {
  manual_seed(1);
  Pair model;
  prepared(model, Precision::half(DType::f16));
  optim::SGD sgd(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  train(model, sgd, 0, 1);
  const std::vector<double> before = weights_of(model);
  model.to_full_precision();
  EXPECT_EQ(weights_of(model), before);
  train(model, sgd, 1, 1);
  EXPECT_NE(weights_of(model), before);
}

TEST(FullPrecision, FrozenAndTiedParametersFollow) {
  manual_seed(1);
  Pair model;
  prepared(model, Precision::mixed(DType::f16));
  optim::AdamW adam(model.parameters());
  model.freeze("second");
  const std::vector<double> frozen = numbers_of(model.second.weight);
  model.to_full_precision();
  train(model, adam, 0, 2);
  EXPECT_EQ(model.second.weight.dtype(), DType::f32);
  EXPECT_FALSE(model.second.weight.requires_grad());
  const std::vector<double> after = numbers_of(model.second.weight);
  ASSERT_EQ(after.size(), frozen.size());
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_NEAR(after[i], frozen[i], 1e-3);  // the master from which f16 was rounded
  }
  model.unfreeze("second");
  train(model, adam, 2, 1);
  EXPECT_NE(numbers_of(model.second.weight), after);
}

TEST(FullPrecision, ForgetsGradientsAndRefusesOldGraphs) {
  manual_seed(1);
  Pair model;
  prepared(model, Precision::mixed(DType::f16));
  const Tensor x = randn({2, 5}).to(kernels::test_device());
  sum(model(x)).backward();
  const Tensor old = sum(model(x));
  model.to_full_precision();
  EXPECT_FALSE(model.first.weight.grad().defined());
  EXPECT_THROW(old.backward(), Error);
  sum(model(x)).backward();
}

TEST(FullPrecision, OfAModelInFullPrecisionChangesNothing) {
  Pair model;
  prepared(model, Precision::full());
  const std::vector<double> before = weights_of(model);
  model.to_full_precision();
  EXPECT_EQ(weights_of(model), before);
}

}  // namespace
}  // namespace binade::full_precision_test
