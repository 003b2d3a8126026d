// Optimizers of tensors that belong to no module.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/optim/adamw.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>
#include <tests/support/error_of.h>

namespace binade::optim::variables_test {
namespace {

Tensor on_device(const Tensor& t) { return t.to(kernels::test_device()); }

TEST(Variables, AreTrained) {
  Tensor z = on_device(full({3}, 4.0)), scale = on_device(full({1}, 2.0, DType::f64));
  AdamW adam(ParameterList::of(z, scale), {.lr = 0.1, .weight_decay = 0});
  for (int i = 0; i < 300; ++i) {
    const Tensor loss = sum(square(z - 1.0)) + sum(square(scale + 1.0)).to(DType::f32);
    loss.backward();
    (void)adam.step();
  }
  EXPECT_TRUE(allclose(z, full_like(z, 1), 0, 1e-2));
  EXPECT_NEAR(scale.item(), -1, 1e-2);
}

TEST(Variables, OfAVectorHaveNamesInOrder) {
  std::vector<Tensor> weights{on_device(randn({2, 3})), on_device(randn({5}))};
  const std::vector<double> before = weights[0].to_vector<double>();
  const ParameterList list = ParameterList::of(weights);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[1].name, "1");
  EXPECT_EQ(weights[0].to_vector<double>(), before);
  EXPECT_TRUE(weights[1].requires_grad());
  SGD sgd(list, {.lr = 1});
  sum(weights[0]).backward();
  (void)sgd.step();
  EXPECT_EQ(weights[0].at(0), before[0] - 1);
}

// A gradient that is there, and one that comes from a graph of before, reach the new handle.
TEST(Variables, KeepTheirGradients) {
  Tensor z = on_device(ones({2}));
  z.require_grad();
  const Tensor old = sum(z * 3.0);
  sum(z).backward();
  SGD sgd(ParameterList::of(z), {.lr = 1});
  old.backward();
  EXPECT_EQ(z.grad().at(0), 4);
}

TEST(Variables, WrongOnesAreErrors) {
  Tensor z = on_device(ones({2})), whole = on_device(arange(3)), none;
  EXPECT_NE(error_of([&] { ParameterList::of(z, z); }).find("variable 1 is variable 0 again"),
            std::string::npos);
  EXPECT_FALSE(z.requires_grad());
  EXPECT_NE(error_of([&] { ParameterList::of(z, whole); }).find("variable 1 is i64, expected"),
            std::string::npos);
  EXPECT_NE(error_of([&] { ParameterList::of(none); }).find("variable 0 is undefined"),
            std::string::npos);
  z.require_grad();
  Tensor computed = z * 2.0;
  EXPECT_NE(error_of([&] { ParameterList::of(computed); }).find("call detach() first"),
            std::string::npos);
  {
    const ParameterList list = ParameterList::of(z);
    EXPECT_NE(error_of([&] { ParameterList::of(z); }).find("another list that is in use"),
              std::string::npos);
  }
  EXPECT_EQ(ParameterList::of(z).size(), 1U);  // the first list is gone
}

}  // namespace
}  // namespace binade::optim::variables_test
