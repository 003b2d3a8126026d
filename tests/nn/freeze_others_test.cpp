// FreezeOthers: while it exists only some parameters want gradients, and backward goes through the
// others.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/freeze_others.h>
#include <binade/nn/linear.h>
#include <gtest/gtest.h>

namespace binade::nn::freeze_others_test {
namespace {

struct Net : Module {
  Linear a{*this, "a", {.in = 3, .out = 4}}, b{*this, "b", {.in = 4, .out = 2}};
  Linear c{*this, "c", {.in = 2, .out = 1}};
  Tensor forward(const Tensor& x) override { return c(tanh(b(tanh(a(x))))); }
};

bool has_gradient(const Linear& layer) {
  return layer.weight.requires_grad() && layer.weight.grad().defined();
}

TEST(FreezeOthers, GradientsGoThroughTheOthers) {
  manual_seed(3);
  Net net;
  const Tensor x = randn({5, 3});
  mean(net(x)).backward();
  const Tensor expected = net.a.weight.grad().detach() * 1.0;
  net.parameters().arena()->clear_gradients();
  {
    const FreezeOthers scope(net, net.a.parameters());
    EXPECT_FALSE(net.b.weight.requires_grad());
    mean(net(x)).backward();
    EXPECT_TRUE(has_gradient(net.a));
    for (int64_t i = 0; i < expected.numel(); ++i) {
      EXPECT_EQ(net.a.weight.grad().at(i), expected.at(i));
    }
  }
  for (const Linear* other : {&net.b, &net.c}) {
    EXPECT_TRUE(other->weight.requires_grad());
    EXPECT_FALSE(has_gradient(*other));
  }
  net.parameters().arena()->clear_gradients();
  mean(net(x)).backward();
  EXPECT_TRUE(has_gradient(net.b)) << "after the scope all want gradients again";
}

// All ways to name a parameter give the same answer.
TEST(FreezeOthers, ListsOfParametersAgree) {
  Net net;
  net.freeze("b.bias");
  const auto expect_equal = [&net](size_t wanted) {
    const ParameterList list = net.parameters();
    const NamedTensors named = net.named_parameters();
    ASSERT_EQ(list.size(), named.size());
    size_t trainable = 0;
    for (size_t i = 0; i < named.size(); ++i) {
      EXPECT_EQ(list[i].name, named[i].first);
      EXPECT_EQ(list[i].value.requires_grad(), named[i].second.requires_grad()) << list[i].name;
      EXPECT_EQ(list[i].trainable, named[i].second.requires_grad()) << list[i].name;
      trainable += list[i].trainable;
      EXPECT_FALSE(list[i].value.grad().defined()) << "there was no backward";
      EXPECT_FALSE(named[i].second.grad().defined());
    }
    EXPECT_EQ(trainable, wanted);
  };
  expect_equal(5);
  {
    const FreezeOthers scope(net, net.a.parameters());
    expect_equal(2);
    const FreezeOthers inner(net, net.b.parameters());
    expect_equal(0);
  }
  expect_equal(5);
}

TEST(FreezeOthers, FrozenParametersStayFrozen) {
  Net net;
  net.freeze("b");
  {
    const FreezeOthers scope(net, net.c.parameters());
    EXPECT_FALSE(net.a.weight.requires_grad());
    EXPECT_TRUE(net.c.weight.requires_grad());
  }
  EXPECT_TRUE(net.a.weight.requires_grad());
  EXPECT_FALSE(net.b.weight.requires_grad());
  net.unfreeze("b");
  EXPECT_TRUE(net.b.weight.requires_grad());
}

// No list, or an empty one, keeps nothing; several lists keep all of theirs.
TEST(FreezeOthers, NoListFreezesAll) {
  Net net;
  {
    const FreezeOthers scope(net, {});
    EXPECT_FALSE(net.a.weight.requires_grad() || net.c.bias.requires_grad());
  }
  {
    const FreezeOthers scope(net, ParameterList());
    EXPECT_FALSE(net.a.weight.requires_grad());
  }
  const ParameterList a = net.a.parameters(), b = net.b.parameters();
  const FreezeOthers scope(net, {&a, &b});
  EXPECT_TRUE(net.a.weight.requires_grad() && net.b.weight.requires_grad());
  EXPECT_FALSE(net.c.weight.requires_grad());
}

// A loss that reaches only frozen parameters is an error.
TEST(FreezeOthers, ALossOfFrozenParametersAloneIsAnError) {
  Net net;
  const FreezeOthers scope(net, net.a.parameters());
  EXPECT_THROW(mean(net.c(randn({2, 2}))).backward(), Error);
}

}  // namespace
}  // namespace binade::nn::freeze_others_test
