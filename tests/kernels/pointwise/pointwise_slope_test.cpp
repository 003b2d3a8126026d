// Tests the kernel that computes a function and its slope in one pass.
#include <binade/kernels/pointwise/pointwise.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/strided_array.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

namespace binade::kernels::pointwise_slope_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// It has the bits of the two kernels that it replaces, on values around and beyond every branch.
TEST(PointwiseSlope, HasTheBitsOfForwardAndBackward) {
  const int64_t n = 100003;
  std::vector<float> x(n), y(n), slope(n), alone(n), dx(n), ones(n, 1.0f);
  for (int64_t i = 0; i < n; ++i) {
    x[size_t(i)] = 40.0f * static_cast<float>(i) / static_cast<float>(n) - 20.0f;
  }
  const double special[] = {0, -0.0, kInf, -kInf, kNan, 1e-40, -1e-40, 3e38, -3e38};
  std::copy(std::begin(special), std::end(special), x.begin());
  const auto view = [n](std::vector<float>& v) { return view_of(v.data(), DType::f32, {n}); };
  for (Unary op : {Unary::gelu, Unary::gelu_tanh}) {
    cpu::unary_forward({.op = op, .x = view(x), .y = view(alone)});
    cpu::unary_backward({.op = op, .saved = view(x), .dy = view(ones), .dx = view(dx)});
    cpu::unary_forward_slope({.op = op, .x = view(x), .y = view(y), .slope = view(slope)});
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(alone[i])) << x[i];
      ASSERT_EQ(std::bit_cast<uint32_t>(slope[i]), std::bit_cast<uint32_t>(dx[i])) << x[i];
    }
  }
  EXPECT_THROW(cpu::unary_forward_slope(
                   {.op = Unary::exp, .x = view(x), .y = view(y), .slope = view(slope)}),
               Error);
}

TEST(PointwiseSlope, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::pointwise_slope_test
