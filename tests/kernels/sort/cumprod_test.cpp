// Compares cumulative products and their gradients along every dimension with double products, with
// no zero, one and several in a line; NaN, intermediate overflow, integers.
#include <binade/kernels/sort/cumprod.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::cumprod_test {
namespace {

// The offsets of one line's elements, row-major: first + k * inner.
struct Line {
  int64_t first, inner, n;
  int64_t operator[](int64_t k) const { return first + k * inner; }
};
std::vector<Line> lines_of(const Dims& sizes, int dim) {
  int64_t inner = 1, all = 1;
  for (int d = 0; d < sizes.size(); ++d) {
    all *= sizes[d];
    inner *= d > dim ? sizes[d] : 1;
  }
  std::vector<Line> lines;
  for (int64_t i = 0; sizes[dim] > 0 && i < all / sizes[dim]; ++i) {
    lines.push_back({i / inner * inner * sizes[dim] + i % inner, inner, sizes[dim]});
  }
  return lines;
}

// Puts `zeros` zeros into each line that is long enough.
void put_zeros(Array& x, int dim, int zeros) {
  uint32_t seed = 12345;
  for (const Line& line : lines_of(x.view().sizes, dim)) {
    for (int i = 0; i < zeros; ++i) {
      seed = seed * 1664525u + 1013904223u;
      x.set(line[static_cast<int64_t>(seed >> 8) % line.n], 0);
    }
  }
}

void check(DType dtype, const Dims& sizes, int dim, int zeros, Layout layout, Layout out) {
  Array x(dtype, sizes, layout), y(dtype, sizes, out), dy(dtype, sizes), dx(dtype, sizes, out);
  x.random(static_cast<uint32_t>(dim) + 1, -2, 2);
  dy.random(7);
  if (layout != Layout::same_rows && layout != Layout::same_columns) {
    put_zeros(x, dim, zeros);
  }
  const std::string what = describe(dtype, sizes, layout) + " dim " + std::to_string(dim);
  cumprod_forward({x.view(), y.view(), dim});
  ASSERT_TRUE(y.gaps_untouched()) << what;
  for (const Line& line : lines_of(sizes, dim)) {
    double product = 1;
    for (int64_t k = 0; k < line.n; ++k) {
      product *= x[line[k]];
      const double bound = is_floating(dtype) ? 2 * epsilon(dtype) * std::fabs(product) + 1e-7 : 0;
      ASSERT_NEAR(y[line[k]], product, bound) << what << " element " << k;
    }
  }
  if (!is_floating(dtype)) {
    return;
  }
  cumprod_backward({x.view(), dy.view(), dx.view(), dim});
  ASSERT_TRUE(dx.gaps_untouched()) << what;
  for (const Line& line : lines_of(sizes, dim)) {
    for (int64_t k = 0; k < line.n; ++k) {  // by the definition
      double sum = 0, terms = 0;
      double product = 1;
      for (int64_t i = 0; i < line.n; ++i) {
        product *= i == k ? 1 : x[line[i]];
        sum += i >= k ? dy[line[i]] * product : 0;
        terms += i >= k ? std::fabs(dy[line[i]] * product) : 0;
      }
      ASSERT_NEAR(dx[line[k]], sum, 2 * epsilon(dtype) * (std::fabs(sum) + 0.01 * terms) + 1e-7)
          << what << " element " << k;
    }
  }
}

TEST(Cumprod, EveryDimensionLayoutAndDtype) {
  int turn = 0;
  for (const Dims& sizes : {Dims{7}, Dims{9, 11}, Dims{5, 1}, Dims{0, 3}, Dims{2, 9, 6, 5}}) {
    for (int dim = 0; dim < sizes.size(); ++dim) {
      for (DType dtype :
           {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32}) {
        for (Layout layout : kInputLayouts) {
          if (every_combination() || turn++ % 5 == 0) {
            for (int zeros : {0, 1, 3}) {
              check(dtype, sizes, dim, zeros, layout, Layout::step2);
              check(dtype, sizes, dim, zeros, layout, Layout::transposed);
            }
          }
        }
      }
    }
  }
}

std::vector<double> gradient(const std::vector<double>& x_, DType dtype) {
  const auto n = static_cast<int64_t>(x_.size());
  Array x(dtype, {n}), dy(dtype, {n}), dx(dtype, {n});
  for (int64_t i = 0; i < n; ++i) {
    x.set(i, x_[static_cast<size_t>(i)]);
    dy.set(i, 1);
  }
  cumprod_backward({x.view(), dy.view(), dx.view(), 0});
  std::vector<double> result;
  for (int64_t i = 0; i < n; ++i) {
    result.push_back(dx[i]);
  }
  return result;
}

TEST(Cumprod, ZerosHaveTheExactGradient) {
  for (DType dtype : floating_dtypes()) {
    EXPECT_EQ(gradient({2, 3, 4}, dtype), (std::vector<double>{16, 10, 6}));
    EXPECT_EQ(gradient({2, 0, 4}, dtype), (std::vector<double>{1, 10, 0}));
    EXPECT_EQ(gradient({0, 3, 0, 5}, dtype), (std::vector<double>{4, 0, 0, 0}));
    EXPECT_EQ(gradient({0, 0}, dtype), (std::vector<double>{1, 0}));
  }
}

TEST(Cumprod, ProductsThatOverflowOnTheWay) {
  // f16 is multiplied in f32, so 6e4 * 6e4 can return to the range of f16.
  Array x(DType::f16, {3}), y(DType::f16, {3});
  x.set(0, 60000);
  x.set(1, 60000);
  x.set(2, 0x1p-20);
  cumprod_forward({x.view(), y.view(), 0});
  EXPECT_TRUE(std::isinf(y[1]));
  EXPECT_NEAR(y[2], 60000.0 * 60000 * 0x1p-20, 2);
  // The product stays 0 after a 0, even before large numbers, and so do the gradients after it.
  for (DType dtype : {DType::f64, DType::f32}) {
    const std::vector<double> dx = gradient({0, 1e30, 1e30, 1e30, 1e30}, dtype);
    EXPECT_EQ(std::vector<double>(dx.begin() + 1, dx.end()), (std::vector<double>{0, 0, 0, 0}));
  }
}

TEST(Cumprod, NanGoesOnAndIntegersWrap) {
  Array x(DType::f32, {4}), y(DType::f32, {4});
  for (int64_t i = 0; i < 4; ++i) {
    x.set(i, i == 1 ? std::numeric_limits<double>::quiet_NaN() : 0);
  }
  cumprod_forward({x.view(), y.view(), 0});
  EXPECT_EQ(y[0], 0);
  EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[3]));
  for (DType dtype : floating_dtypes()) {
    for (double dx : gradient({1, std::numeric_limits<double>::quiet_NaN(), 2}, dtype)) {
      EXPECT_TRUE(std::isnan(dx)) << to_string(dtype);
    }
  }
  Array a(DType::i32, {3}), b(DType::i32, {3});
  a.set(0, 65536);
  a.set(1, 65536);
  a.set(2, 3);
  cumprod_forward({a.view(), b.view(), 0});
  EXPECT_EQ(b[0], 65536);
  EXPECT_EQ(b[1], 0);
  EXPECT_EQ(b[2], 0);
}

TEST(Cumprod, BadArgumentsAreErrors) {
  Array x(DType::f32, {2, 3}), y(DType::f32, {3, 2}), i(DType::i64, {2, 3});
  Array b(DType::boolean, {3});
  EXPECT_THROW(cumprod_forward({x.view(), y.view(), 0}), Error);
  EXPECT_THROW(cumprod_forward({x.view(), x.view(), 2}), Error);
  EXPECT_THROW(cumprod_forward({x.view(), i.view(), 1}), Error);
  EXPECT_THROW(cumprod_forward({b.view(), b.view(), 0}), Error);
  EXPECT_THROW(cumprod_backward({i.view(), i.view(), i.view(), 0}), Error);
  EXPECT_THROW(cumprod_backward({x.view(), y.view(), x.view(), 0}), Error);
}

}  // namespace
}  // namespace binade::kernels::cumprod_test
