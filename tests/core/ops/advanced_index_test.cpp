// Tests indexing in the user's syntax: negative indices, masks, slices, in-place writes, integers,
// and the messages for wrong use.
#include <binade/core/autograd/gradcheck.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>

#include <cmath>
#include <functional>

#include <tests/core/autograd/autograd_testing.h>

namespace binade::advanced_index_test {
namespace {

Device device() { return kernels::test_device(); }
Tensor made(std::initializer_list<double> values, const Dims& sizes, DType dtype = DType::f32) {
  return from_values(values, sizes, dtype, device());
}
Tensor ids(std::initializer_list<double> values) {
  return made(values, {static_cast<int64_t>(values.size())}, DType::i64);
}
// Returns 0, 1, 2, ... with these sizes.
Tensor counted(const Dims& sizes, DType dtype = DType::f32) {
  return reshape(arange(element_count(sizes), dtype, device()), sizes);
}
using Values = std::vector<double>;

template <class F>
std::string message_of(F&& f) {
  try {
    f();
    if (!device().is_cpu()) {
      counted({1}).item();  // waits, because a device reports later
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(AdvancedIndex, ReadsAsPyTorch) {
  const Tensor x = counted({3, 4});
  EXPECT_EQ(values(index(x, {ids({0, -1}), ids({3, 0})})), (Values{3, 8}));
  EXPECT_EQ(values(index(x, {-1, ids({1, 1})})), (Values{9, 9}));
  EXPECT_EQ(values(index(x, {kEllipsis, Slice{.start = -1}})), (Values{3, 7, 11}));
  EXPECT_EQ(index(x, {kNewAxis, Slice{1, {}}, kNewAxis, ids({0})}).sizes(), (Dims{1, 2, 1, 1}));
  EXPECT_EQ(values(index(x, {gt(x, 9.0)})), (Values{10, 11}));
  const Tensor rows = made({1, 0, 1}, {3}, DType::boolean);
  EXPECT_EQ(values(index(x, {rows, ids({1, 2})})), (Values{1, 10}));
  EXPECT_EQ(index(x, {rows}).sizes(), (Dims{2, 4}));
  // With a dimension between the index tensors, their dimension comes first.
  EXPECT_EQ(index(counted({2, 3, 4}), {ids({0, 1, 0, 1, 1}), Slice{}, ids({3})}).sizes(),
            (Dims{5, 3}));
  EXPECT_EQ(index(counted({2, 3, 4}), {Slice{}, made({0, 1}, {2, 1}, DType::i64), ids({3, 0, 1})})
                .sizes(),
            (Dims{2, 2, 3}));
}

TEST(AdvancedIndex, InBrackets) {
  Tensor x = counted({3, 4}), y = counted({3});
  EXPECT_EQ(values(x[ids({-1, 0})][1]), (Values{0, 1, 2, 3}));
  EXPECT_EQ(x[ids({2, 2, 1})].sizes(), (Dims{3, 4}));
  EXPECT_EQ(values(x[x > 8.0]), (Values{9, 10, 11}));
  EXPECT_EQ(values(x[y == 1.0]), (Values{4, 5, 6, 7}));
  EXPECT_NE(message_of([&] { x[ids({0})] = 1; }).find("index_put_"), std::string::npos);
  EXPECT_EQ(values(x)[0], 0);
  y.require_grad();
  backward(sum(y[ids({1, 1, 0})]));
  EXPECT_EQ(values(y.grad()), (Values{1, 2, 0}));
}

TEST(AdvancedIndex, OperatorsOfMasks) {
  const Tensor a = made({0, 0, 1, 1}, {4}, DType::boolean),
               b = made({0, 1, 0, 1}, {4}, DType::boolean);
  EXPECT_EQ(values(a & b), (Values{0, 0, 0, 1}));
  EXPECT_EQ(values(a | b), (Values{0, 1, 1, 1}));
  EXPECT_EQ(values(a ^ b), (Values{0, 1, 1, 0}));
  EXPECT_EQ(values(~a), (Values{1, 1, 0, 0}));
  const Tensor x = counted({4});
  EXPECT_EQ(values((x > 0.0) & (x < 3.0)), (Values{0, 1, 1, 0}));
  for (const auto& wrong :
       std::vector<std::function<void()>>{[&] {
                                            a& ids({1, 2, 3, 4});
                                          },
                                          [&] { x | a; }, [&] { a ^ x; }, [&] { ~x; }}) {
    EXPECT_NE(message_of(wrong).find("expected bool; logical_not, logical_and"), std::string::npos);
  }
  EXPECT_NE(message_of([&] {
              a& made({1}, {1}, DType::boolean) & made({1, 1}, {2}, DType::boolean);
            }),
            "");
}

TEST(AdvancedIndex, WritesInPlaceThroughViews) {
  const Tensor x = zeros({3, 4}, DType::f32, device());
  const uint32_t before = x.version();
  index_put_(x, {Slice{1, {}}, ids({0, -1})}, made({1, 2}, {2}, DType::f64));  // cast, broadcast
  EXPECT_EQ(values(x), (Values{0, 0, 0, 0, 1, 0, 0, 2, 1, 0, 0, 2}));
  EXPECT_GT(x.version(), before);
  index_put_(transpose(x, 0, 1), {ids({1, 1, 2}), ids({0, 0, 1})}, made({5}, {1}), true);
  EXPECT_EQ(values(x), (Values{0, 10, 0, 0, 1, 0, 5, 2, 1, 0, 0, 2}));
  index_put_(x, {eq(x, 0.0)}, -1);
  index_put_(x, {0, Slice{2, {}}}, 7);
  EXPECT_EQ(values(x), (Values{-1, 10, 7, 7, 1, -1, 5, 2, 1, -1, -1, 2}));
  index_put_(x, {gt(x, 6.0)}, made({20, 30, 40}, {3}));
  EXPECT_EQ(values(x), (Values{-1, 20, 30, 40, 1, -1, 5, 2, 1, -1, -1, 2}));
  index_put_(x, {made({0, 1, 0}, {3}, DType::boolean)}, 0);
  EXPECT_EQ(values(x), (Values{-1, 20, 30, 40, 0, 0, 0, 0, 1, -1, -1, 2}));
}

TEST(AdvancedIndex, FollowsTheRulesOfCopy) {
  Tensor x = zeros({3}, DType::f32, device());
  x.require_grad();
  EXPECT_NE(message_of([&] { index_put_(x, {0}, 1); }).find("index_put_: got a tensor whose grad"),
            std::string::npos);
  const NoGradGuard guard;
  index_put_(x, {0}, 1);
  EXPECT_EQ(values(x), (Values{1, 0, 0}));
}

TEST(AdvancedIndex, MessagesSayWhatToDo) {
  const Tensor x = counted({3, 4});
  if (device().is_cpu()) {
    EXPECT_EQ(message_of([&] {
                index(x, {Slice{}, ids({1, -5})});
              }),
              "index: got index -5, expected -4 to 3");
  }
  EXPECT_NE(message_of([&] { index(x, {ids({3})}); }), "");
  EXPECT_EQ(message_of([&] { index(x, {3}); }),
            "index: got index 3 in dimension 0 of shape [3, 4], expected -3 to 2");
  EXPECT_EQ(message_of([&] {
              index_put(x, {ids({0, 1})}, counted({3}));
            }),
            "index_put: got values of shape [3] for elements of shape [2, 4], expected values that "
            "broadcast to them");
  EXPECT_EQ(message_of([&] { index(x, {ones({4}, DType::boolean, device())}); }),
            "index: got a mask of shape [4] at dimension 0 of shape [3, 4], expected equal sizes");
}

TEST(AdvancedIndex, OnlyTheLastValueGetsAGradient) {
  Tensor x = counted({3}, DType::f64), v = made({5, 6, 7}, {3}, DType::f64);
  x.require_grad();
  v.require_grad();
  const Tensor y = index_put(x, {ids({1, 1, -1})}, v);
  EXPECT_EQ(values(y), (Values{0, 6, 7}));
  y.backward(made({1, 2, 3}, {3}, DType::f64));
  EXPECT_EQ(values(x.grad()), (Values{1, 0, 0}));
  EXPECT_EQ(values(v.grad()), (Values{0, 2, 3}));
}

TEST(AdvancedIndex, DifferentiatesTwice) {
  Tensor x = counted({3, 2}, DType::f64);
  x.require_grad();
  const Tensor chosen = index(x, {ids({0, 2, 2})}), y = sum(chosen * chosen * chosen);
  const Tensor g = grad(y, {x}, {.create_graph = true})[0];
  const Tensor h = grad(sum(g), {x})[0];
  EXPECT_EQ(values(h), (Values{0, 6, 0, 0, 48, 60}));
}

TEST(AdvancedIndex, AddsIntegersExactly) {
  const double large = 9007199254740992;  // 2^53: the next integer is no double
  const Tensor y =
      scatter_add(zeros({2}, DType::i64, device()), 0, ids({1, 1, 0}), ids({large, 1, 4}));
  EXPECT_EQ(y.to(Device{}).data<int64_t>()[1], int64_t{9007199254740993});
  EXPECT_EQ(values(scatter_reduce(counted({3}, DType::i32), 0, ids({1, 1, 0}),
                                  made({4, -3, -5}, {3}, DType::i32), "amin", false)),
            (Values{-5, -3, 2}));
}

TEST(AdvancedIndex, NaNInOrderStatistics) {
  const double nan = std::nan("");
  const ValuesIndices y = median(made({3, nan, 1, nan}, {2, 2}), 1);
  EXPECT_TRUE(std::isnan(y.values.at(0)) && std::isnan(y.values.at(1)));
  EXPECT_EQ(values(y.indices), (Values{1, 1}));
  EXPECT_TRUE(std::isnan(quantile(made({3, nan, 1}, {3}), 0.0).item()));
  EXPECT_EQ(median(made({3, 1, 2, 4}, {4})).item(), 2);
  const Tensor most =
      scatter_reduce(zeros({2}, DType::f32, device()), 0, ids({0, 0}), made({nan, 1}, {2}), "amax");
  EXPECT_TRUE(std::isnan(most.at(0)) && most.at(1) == 0);
}

// The quantile of a line with NaN is the last element in sorted order, which gets the gradient.
TEST(AdvancedIndex, QuantileOfNaNPassesTheGradientToNaN) {
  const double nan = std::nan("");
  Tensor x = made({3, nan, 1, nan, 5, 7, 2, 9, 4, 6}, {2, 5}, DType::f64);
  x.require_grad();
  for (const double q : {0.0, 0.3, 0.5, 1.0}) {
    const Tensor y = quantile(x, q, 1);
    EXPECT_TRUE(std::isnan(y.at(0)) && !std::isnan(y.at(1)));
    const Tensor dx = grad(y, {x}, {.upstream = {made({-2.5, 0.75}, {2}, DType::f64)}})[0];
    EXPECT_EQ(values(select(dx, 0, 0)), (Values{0, 0, 0, -2.5, 0})) << q;
    EXPECT_NEAR(sum(select(dx, 0, 1)).item(), 0.75, 1e-12) << q;
  }
  const Tensor both = quantile(x, made({0.25, 0.5}, {2}, DType::f64), 1);
  EXPECT_TRUE(std::isnan(both.at(0)) && std::isnan(both.at(2)) && both.at(3) == 6);
}

}  // namespace
}  // namespace binade::advanced_index_test
