// Tests ops that a user defines, as in docs/custom-ops.md.
#include <binade/core/autograd/gradcheck.h>
#include <binade/core/autograd/op.h>

#include "tests/core/autograd/autograd_testing.h"

namespace binade::custom_op_test {
namespace {

// Computes y = x / (1 + |x|), dx = dy / (1 + |x|)^2.
Tensor softsign_of(const Tensor& x_, OpClass op_class) {
  static constexpr Op kNarrow{"my_softsign", OpClass::pointwise};
  static constexpr Op kWide{"my_wide_softsign", OpClass::wide_pointwise};
  const Op& op = op_class == OpClass::pointwise ? kNarrow : kWide;
  auto [x] = op.enter(x_);
  Tensor y;
  {
    const NoGradGuard plain;
    y = x / (abs(x) + 1.0);
  }
  return op.record({x}, y, save(x), [](const Tensor& dy, const Tensor& x) -> Grads {
    return {dy / square(abs(x) + 1.0)};
  });
}

// Computes y = a + t (b - a) with gradients for all three, made of ops: twice differentiable.
Tensor lerp_of(const Tensor& a_, const Tensor& b_, const Tensor& t_) {
  static constexpr Op kOp{"my_lerp", OpClass::pointwise, true};
  auto [a, b, t] = kOp.enter(a_, b_, t_);
  Tensor y;
  {
    const NoGradGuard plain;
    y = a + t * (b - a);
  }
  return kOp.record({a, b, t}, y, save(a, b, t),
                    [](const Tensor& dy, Needs needs, const Tensor& a, const Tensor& b,
                       const Tensor& t) -> Grads {
                      return {needs[0] ? dy - dy * t : Tensor(), needs[1] ? dy * t : Tensor(),
                              needs[2] ? dy * (b - a) : Tensor()};
                    });
}

// Returns (a + b, a - b), recorded with record_many().
std::vector<Tensor> butterfly(const Tensor& a, const Tensor& b) {
  static constexpr Op kOp{"my_butterfly", OpClass::pointwise, true};
  std::vector<Tensor> y;
  {
    const NoGradGuard plain;
    y = {a + b, a - b};
  }
  kOp.record_many(
      std::vector<Tensor>{a, b}, y, {},
      [](std::span<const Tensor> dys, Needs, std::span<const Tensor>) {
        const Tensor& d = dys[0];
        const Tensor& e = dys[1];
        return !e.defined() ? Grads(d, d) : !d.defined() ? Grads(e, neg(e)) : Grads(d + e, d - e);
      });
  return y;
}

Tensor random(const Dims& sizes) { return randn(sizes, DType::f64).require_grad(); }

TEST(CustomOp, OneInput) {
  const Tensor x = random({3, 4});
  gradcheck([](const auto& in) { return softsign_of(in[0], OpClass::pointwise); }, {x});
  EXPECT_HAS(error_of([&] {
               gradgradcheck([](const auto& in) { return softsign_of(in[0], OpClass::pointwise); },
                             {x});
             }),
             "double backward of my_softsign is not implemented");
}

TEST(CustomOp, SeveralInputsBroadcastAndTwiceDifferentiable) {
  const auto f = [](const auto& in) { return lerp_of(in[0], in[1], in[2]); };
  gradcheck(f, {random({3, 4}), random({4}), random({3, 1})});
  gradgradcheck(f, {random({3, 4}), random({4}), random({3, 1})});
}

TEST(CustomOp, SeveralOutputs) {
  const auto both = [](const auto& in) {
    const std::vector<Tensor> y = butterfly(in[0], in[1]);
    return y[0] * y[1];
  };
  gradcheck(both, {random({2, 3}), random({2, 3})});
  gradgradcheck(both, {random({2, 3}), random({2, 3})});
  for (size_t k : {0, 1}) {
    gradcheck([k](const auto& in) { return butterfly(in[0], in[1])[k] * in[0]; },
              {random({3}), random({3})});
  }
}

TEST(CustomOp, FollowsThePrecisionPolicyByItsClass) {
  const Tensor x = randn({4}).require_grad();
  const PrecisionScope scope(Precision::autocast(DType::f16));
  const Tensor h = x.to(DType::f16);
  EXPECT_EQ(softsign_of(h, OpClass::pointwise).dtype(), DType::f16);
  const Tensor wide = softsign_of(h, OpClass::wide_pointwise);
  EXPECT_EQ(wide.dtype(), DType::f32);
  sum(wide).backward();
  EXPECT_EQ(x.grad().dtype(), DType::f32);
}

TEST(CustomOp, WhatItSavesIsCheckedAndErrorsNameIt) {
  Tensor x = random({3});
  Tensor h = x * 1.0, y = softsign_of(h, OpClass::pointwise);
  h.detach().fill_(0);
  EXPECT_HAS(error_of([&] { sum(y).backward(); }),
             "my_softsign: a tensor saved for backward was changed in place");
  static constexpr Op kBad{"my_bad", OpClass::pointwise};
  Tensor z = x.detach();
  z = kBad.record({x}, z, save(), [](const Tensor& dy) -> Grads { return {reshape(dy, {3, 1})}; });
  EXPECT_HAS(error_of([&] { sum(z).backward(); }), "[3, 1]");
}

// record() takes ownership of the result. Two handles of one result each get a history.
TEST(CustomOp, AResultIsRecordedOnce) {
  static constexpr Op kTwice{"my_double", OpClass::pointwise};
  const Tensor x = random({3});
  const auto record = [&](Tensor& y) {
    return kTwice.record({x}, y, save(), [](const Tensor& dy) -> Grads { return {dy * 2.0}; });
  };
  Tensor y = x.detach() * 2.0, again = y;
  const Tensor first = record(y);
  EXPECT_HAS(error_of([&] { (void)record(y); }), "my_double: got an undefined result to record");
  EXPECT_HAS(error_of([&] { (void)kTwice.plain({x}, y); }), "my_double: got an undefined result");
  std::vector<Tensor> outputs = {x.detach(), y};
  EXPECT_HAS(error_of([&] { kTwice.record_many(std::vector<Tensor>{x}, outputs, {}, {}); }),
             "my_double: got an undefined result");
  const Tensor second = record(again);
  for (int uses : {1, 2}) {
    backward(uses == 1 ? second : first + second, ones({3}, DType::f64), {.retain_graph = true});
    EXPECT_EQ(sum(x.grad()).item(), uses == 1 ? 6 : 6 + 12);
  }
}

}  // namespace
}  // namespace binade::custom_op_test
