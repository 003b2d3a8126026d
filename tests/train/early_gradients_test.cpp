// Tests gradients from a backward that runs before the parameters' arena is built or rebuilt: the
// optimizer must find them.
#include <binade/core/autograd/hooks.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/models.h>
#include <binade/nn/sequential.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>

namespace binade::nn::early_gradients_test {
namespace {

using kernels::test_device;

class Net : public Module {
 public:
  Net() {
    register_module("a", a);
    register_module("b", b);
  }
  Tensor forward(const Tensor& x) override { return b(tanh(a(x))); }
  Linear a{{.in = 5, .out = 7}}, b{{.in = 7, .out = 3}};
};

struct Data {
  Tensor x, dy;
};

Data make_data(int64_t seed) {
  manual_seed(static_cast<uint64_t>(seed));
  return {randn({4, 5}), randn({4, 3})};
}

Tensor loss_of(Module& model, const Data& data) {
  return sum(model(data.x.to(model.device())).to(DType::f32) * data.dy.to(model.device()));
}

std::vector<double> values_of(const Module& model) {
  std::vector<double> values;
  for (const auto& [name, tensor] : model.named_parameters()) {
    const Tensor host = tensor.detach().to(Device{});
    for (int64_t i = 0; i < host.numel(); ++i) {
      values.push_back(host.at(i));
    }
  }
  return values;
}

void step(Module& model) {
  optim::SGD sgd(model.parameters(), {.lr = 0.25});
  EXPECT_EQ(sgd.step(), StepOutcome::applied);
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double bound) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], bound) << i;
  }
}

// Returns the weights after one step on the gradients of `backwards` batches, in the usual order.
std::vector<double> in_order(Device device, int backwards = 1) {
  manual_seed(1);
  Net net;
  net.to(device, Precision::full());
  for (int i = 0; i < backwards; ++i) {
    loss_of(net, make_data(10 + i)).backward();
  }
  step(net);
  return values_of(net);
}

TEST(EarlyGradients, BackwardBeforeTheFirstParameters) {
  manual_seed(1);
  Net net;
  loss_of(net, make_data(10)).backward();
  step(net);
  EXPECT_EQ(values_of(net), in_order({}));
}

TEST(EarlyGradients, AGraphRecordedBeforeTheFirstParameters) {
  manual_seed(1);
  Net net;
  const Tensor first = loss_of(net, make_data(10)), second = loss_of(net, make_data(11));
  first.backward();
  const ParameterList parameters = net.parameters();
  second.backward();
  step(net);
  EXPECT_EQ(values_of(net), in_order({}, 2));
}

TEST(EarlyGradients, SumsGoOnInTheArena) {
  manual_seed(1);
  Net net;
  loss_of(net, make_data(10)).backward();
  const ParameterList parameters = net.parameters();
  loss_of(net, make_data(11)).backward();
  step(net);
  EXPECT_EQ(values_of(net), in_order({}, 2));
}

TEST(EarlyGradients, MoveToTheDevice) {
  manual_seed(1);
  Net net;
  loss_of(net, make_data(10)).backward();
  net.to(test_device(), Precision::full());
  step(net);
  expect_near(values_of(net), in_order(test_device()), 1e-5);
}

TEST(EarlyGradients, AreConvertedWithTheirParameters) {
  for (const DType low : {DType::f16, DType::bf16}) {
    manual_seed(1);
    Net net;
    loss_of(net, make_data(10)).backward();
    net.to(test_device(), Precision::mixed(low));
    EXPECT_TRUE(net.a.weight.grad().defined());
    net.to(test_device(), Precision::full());  // discards the arena and its masters
    step(net);
    expect_near(values_of(net), in_order({}), low == DType::f16 ? 0.01 : 0.1);
  }
}

TEST(EarlyGradients, SurviveAParentThatComesLater) {
  manual_seed(1);
  auto net = std::make_unique<Net>();
  const ParameterList own = net->parameters();
  loss_of(*net, make_data(10)).backward();
  Sequential parent;
  Module& child = parent.add(std::move(net));
  step(parent);
  EXPECT_EQ(values_of(child), in_order({}));
}

TEST(EarlyGradients, HooksMoveToo) {
  manual_seed(1);
  Net net;
  int calls = 0;
  HookHandle handle = on_gradient(net.a.weight, [&calls](Tensor& gradient) {
    ++calls;
    gradient = gradient * 2;
  });
  const ParameterList parameters = net.parameters();
  loss_of(net, make_data(10)).backward();
  EXPECT_EQ(calls, 1);
  Net plain;
  plain.load_state(net.state());
  loss_of(plain, make_data(10)).backward();
  const Tensor twice = plain.a.weight.grad() * 2;
  EXPECT_EQ(amax(abs(sub(net.a.weight.grad(), twice))).item(), 0);
  handle.remove();
  loss_of(net, make_data(11)).backward();
  EXPECT_EQ(calls, 1);
}

TEST(EarlyGradients, FrozenParametersStayOut) {
  manual_seed(1);
  Net net;
  const Tensor loss = loss_of(net, make_data(10));
  net.freeze("a");
  const std::vector<double> before = values_of(net.a);
  loss.backward();
  step(net);
  EXPECT_EQ(values_of(net.a), before);
  std::vector<double> all = in_order({});
  EXPECT_EQ(values_of(net.b), std::vector<double>(all.end() - 24, all.end()));
}

TEST(EarlyGradients, FreezingIsAReason) {
  Net net;
  net.freeze();
  try {
    loss_of(net, make_data(10)).backward();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("are frozen; call unfreeze()"), std::string::npos)
        << error.what();
    EXPECT_EQ(std::string(error.what()).find("detach()"), std::string::npos) << error.what();
  }
  net.to(test_device(), Precision::mixed(DType::f16));
  EXPECT_THROW(loss_of(net, make_data(10)).backward(), Error);
  net.unfreeze();
  loss_of(net, make_data(10)).backward();
  EXPECT_TRUE(net.a.weight.grad().defined());
}

// A parameter list made before a move holds tensors that the model no longer uses, so training them
// would have no effect.
TEST(EarlyGradients, AnOptimizerOverAnAbandonedArenaIsRefused) {
  const std::vector<std::function<void(Net&)>> changes = {
      [](Net& net) { net.to(test_device(), Precision::mixed(DType::f16)); },
      [](Net& net) { net.to(DType::f64); },
      [](Net& net) {
        net.a.weight = randn({7, 5});
      },
  };
  for (const auto& change : changes) {
    Net net;
    const ParameterList before = net.parameters();
    change(net);
    const ParameterList after = net.parameters();
    try {
      optim::SGD sgd(before, {.lr = 0.1});
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("from before the model was moved"),
                std::string::npos)
          << error.what();
    }
    optim::SGD sgd(after, {.lr = 0.1});
  }
}

TEST(EarlyGradients, TiedParametersStayTiedOnAnotherDevice) {
  class Tied : public Module {
   public:
    Tied() {
      register_module("a", a);
      register_module("b", b);
      b.weight = a.weight;
    }
    Tensor forward(const Tensor& x) override { return b(a(x)); }
    Linear a{{.in = 3, .out = 3}}, b{{.in = 3, .out = 3}};
  };
  manual_seed(2);
  Tied tied;
  sum(tied(randn({2, 3})) * randn({2, 3})).backward();
  const Tensor before = tied.a.weight.grad();
  tied.to(test_device(), Precision::full());
  EXPECT_EQ(tied.a.weight.handle().get(), tied.b.weight.handle().get());
  EXPECT_EQ(tied.parameters().size(), 3u);
  EXPECT_EQ(amax(abs(sub(tied.b.weight.grad().to(Device{}), before))).item(), 0);
}

}  // namespace
}  // namespace binade::nn::early_gradients_test
