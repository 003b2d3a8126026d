// The activation argument of linear and conv2d gives the same bits as the op followed by the
// activation, for the result and the gradients, in one pass or two.
#include <binade/core/autograd/op.h>
#include <binade/core/observe/observer.h>
#include <binade/core/precision/precision.h>
#include <tests/core/autograd/autograd_testing.h>

#include <set>

namespace binade::activation_argument_test {
namespace {

using Function = std::function<Tensor(const std::vector<Tensor>&, Activation)>;

Tensor linear_of(const std::vector<Tensor>& t, Activation activation) {
  return linear(t[0], t[1], t[2], activation);
}
Tensor conv_of(const std::vector<Tensor>& t, Activation activation) {
  return conv2d(t[0], t[1], t[2], {.padding = {1, 1}}, activation);
}

struct Case {
  const char* name;
  Function function;
  std::vector<Dims> shapes;
};
const Case kCases[] = {
    {"linear", linear_of, {{5, 7}, {3, 7}, {3}}},
    {"linear of a batch", linear_of, {{2, 5, 7}, {3, 7}, {3}}},
    {"conv2d", conv_of, {{2, 3, 6, 5}, {4, 3, 3, 3}, {4}}},
    {"conv2d by Winograd", conv_of, {{8, 16, 9, 8}, {33, 16, 3, 3}, {33}}},
};

std::vector<Tensor> leaves(const Case& c, DType dtype) {
  manual_seed(3);
  std::vector<Tensor> tensors;
  for (const Dims& shape : c.shapes) {
    Tensor t = randn(shape, dtype);
    tensors.push_back(t.require_grad());
  }
  return tensors;
}

Tensor apart(const Tensor& y, Activation activation) {
  switch (activation) {
    case Activation::relu: return relu(y);
    case Activation::gelu_tanh: return gelu_tanh(y);
    default: return y;
  }
}

// Returns the result and all gradients.
std::vector<std::vector<double>> all_values(const Case& c, DType dtype, Activation activation,
                                            bool at_once) {
  const std::vector<Tensor> in = leaves(c, dtype);
  const Tensor y =
      at_once ? c.function(in, activation) : apart(c.function(in, Activation::none), activation);
  const Tensor upstream = randn(y.sizes(), dtype);
  sum(y * upstream).backward();
  std::vector<std::vector<double>> result{values(y)};
  for (const Tensor& t : in) {
    result.push_back(values(t.grad()));
  }
  return result;
}

TEST(ActivationArgument, IsTheActivationOfTheResult) {
  for (const Case& c : kCases) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      for (const Activation a : {Activation::none, Activation::relu, Activation::gelu_tanh}) {
        EXPECT_EQ(all_values(c, dtype, a, true), all_values(c, dtype, a, false))
            << c.name << " " << text(dtype) << " " << int(a);
      }
    }
  }
}

TEST(ActivationArgument, WithoutGradients) {
  const NoGradGuard guard;
  for (const Case& c : kCases) {
    const std::vector<Tensor> in = leaves(c, DType::f32);
    const Tensor y = c.function(in, Activation::relu);
    EXPECT_EQ(values(y), values(relu(c.function(in, Activation::none)))) << c.name;
    EXPECT_FALSE(y.requires_grad());
  }
}

class Names : public OpObserver {
 public:
  void result(const OpEvent& event) override { names.insert(event.op.name); }
  std::set<std::string> names;
};

// If there is an observer or a policy, both ops run.
TEST(ActivationArgument, IsAnOpOfItsOwnWhereSomebodyLooks) {
  for (const Case& c : kCases) {
    const std::vector<Tensor> in = leaves(c, DType::f32);
    Names seen;
    {
      const ObserverScope scope(seen);
      c.function(in, Activation::relu);
    }
    EXPECT_TRUE(seen.names.count("relu")) << c.name;
    EXPECT_EQ(all_values(c, DType::f32, Activation::relu, true), [&] {
      Names again;
      const ObserverScope scope(again);
      return all_values(c, DType::f32, Activation::relu, true);
    }()) << c.name;
  }
}

// The backward saves the result.
TEST(ActivationArgument, AChangedResultIsAnError) {
  for (const Case& c : kCases) {
    Tensor y = c.function(leaves(c, DType::f32), Activation::relu);
    const Tensor loss = sum(y * y);
    y.detach().fill_(1);
    EXPECT_HAS(error_of([&] { loss.backward(); }), "in place") << c.name;
  }
}

}  // namespace
}  // namespace binade::activation_argument_test
