// Tests StoredAs: inside it, values are exact in the wanted dtype; afterwards the model is as
// before, in every bit and handle.
#include <binade/binade.h>
#include <binade/nn/stored_as.h>
#include <gtest/gtest.h>

namespace binade::nn::stored_as_test {
namespace {

struct StoredNet : Module {
  StoredNet() { tied.weight = fc.weight; }  // one parameter in two places
  Linear fc{*this, "fc", {.in = 7, .out = 7}};
  Linear tied{*this, "tied", {.in = 7, .out = 7}};
  BatchNorm1d bn{*this, "bn", {.channels = 7}};
  Tensor forward(const Tensor& x) override { return bn(tied(fc(x))); }
};

TEST(StoredAs, RunsInF64WithTheMastersAndPutsEverythingBack) {
  manual_seed(2);
  StoredNet net;
  net.to(Device{}, Precision::mixed(DType::f16));
  net.freeze("fc.bias");
  optim::AdamW adam(net.parameters(), {.lr = 1e-2});
  optim::LossScaler scaler({.init_scale = 64});
  const Tensor x = randn({5, 7});
  const auto step = [&] {
    scaler.scale(mean(square(net(x)))).backward();
    return scaler.step(adam).value();
  };
  (void)step();  // now masters differ from their f16 values
  const NamedTensors exact = net.exact_state(), before = net.state();
  std::vector<Tensor> copies;
  for (const auto& entry : before) {
    copies.push_back(entry.second.clone());
  }
  {
    const StoredAs f64(net, Precision::full(), {.wide = DType::f64});
    EXPECT_EQ(net.fc.weight.dtype(), DType::f64);
    EXPECT_EQ(net.fc.weight.handle().get(), net.tied.weight.handle().get());
    const std::map<std::string, Tensor> masters(exact.begin(), exact.end());
    ASSERT_EQ(f64.parameters().size(), 5u);
    bool rounded = false;
    for (const StoredAs::Parameter& parameter : f64.parameters()) {
      EXPECT_TRUE(parameter.value.requires_grad()) << parameter.path;
      const Tensor master = masters.at(parameter.path).to(DType::f64);
      EXPECT_EQ(max(abs(parameter.value.detach() - master)).item(), 0) << parameter.path;
      rounded |= max(abs(parameter.rounding)).item() > 0;
    }
    EXPECT_TRUE(rounded);
    const Tensor y = net(x.to(DType::f64));
    EXPECT_EQ(y.dtype(), DType::f64);
    mean(square(y)).backward();  // also moves the running statistics of the copies
    EXPECT_NE(net.bn.named_buffers()[0].second.handle().get(), nullptr);
  }
  const NamedTensors after = net.state();
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].second.handle().get(), before[i].second.handle().get()) << before[i].first;
    EXPECT_EQ(max(abs(after[i].second.to(DType::f64) - copies[i].to(DType::f64))).item(), 0)
        << before[i].first;
  }
  EXPECT_FALSE(net.fc.bias.requires_grad());
  EXPECT_FALSE(net.fc.weight.grad().defined());
  EXPECT_EQ(step(), StepOutcome::applied);  // the optimizer still has its parameters
}

TEST(StoredAs, SharesOfTheRoundingAndOtherPrecisions) {
  manual_seed(3);
  StoredNet net;
  net.to(Device{}, Precision::mixed(DType::f16));
  net.load_state(net.exact_state());
  const Tensor stored = net.fc.weight.detach().to(DType::f64);
  {
    const StoredAs whole(net, Precision::full(), {.wide = DType::f64, .rounding = 1});
    EXPECT_EQ(max(abs(net.fc.weight.detach() - stored)).item(), 0);
  }
  {
    const Precision rules =
        Precision::mixed(DType::f16).with({{.module = "fc", .dtype = DType::f32}});
    const StoredAs f32(net, rules);
    EXPECT_EQ(net.fc.weight.dtype(), DType::f32);
    EXPECT_EQ(net.tied.bias.dtype(), DType::f16);
    EXPECT_EQ(net.precision(), rules);
  }
  EXPECT_EQ(net.precision(), Precision::mixed(DType::f16));
  EXPECT_EQ(net.fc.weight.dtype(), DType::f16);
}

}  // namespace
}  // namespace binade::nn::stored_as_test
