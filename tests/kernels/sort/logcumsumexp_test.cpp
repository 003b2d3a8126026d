// Compares cumulative log-sums and their gradients along every dimension with sums of exponentials
// in double, of elements near each other and far apart.
#include <binade/kernels/sort/logcumsumexp.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::logcumsumexp_test {
namespace {

// The reference of one line, which starts at `first`.
struct Case {
  Array x, y, dy, dx;
  double eps;
};
void check_line(const Case& c, int64_t first, int64_t inner, int64_t n, const std::string& what) {
  const auto& [x, y, dy, dx, eps] = c;
  std::vector<double> sums;
  for (int64_t k = 0; k < n; ++k) {
    double largest = x[first], sum = 0;
    for (int64_t i = 0; i <= k; ++i) {
      largest = std::max(largest, x[first + i * inner]);
    }
    for (int64_t i = 0; i <= k; ++i) {
      sum += std::exp(x[first + i * inner] - largest);
    }
    sums.push_back(largest + std::log(sum));
    ASSERT_NEAR(y[first + k * inner], sums.back(), 2 * eps * (1 + std::fabs(sums.back())))
        << what << " element " << k;
  }
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0, terms = 0;
    for (int64_t k = i; k < n; ++k) {
      const double term =
          dy[first + k * inner] * std::exp(x[first + i * inner] - sums[static_cast<size_t>(k)]);
      sum += term;
      terms += std::fabs(term);
    }
    ASSERT_NEAR(dx[first + i * inner], sum, 4 * eps * (std::fabs(sum) + 0.01 * terms) + 1e-7)
        << what << " gradient " << i;
  }
}

void check(DType dtype, const Dims& sizes, int dim, double spread, Layout layout, Layout out) {
  Case c = {Array(dtype, sizes, layout), Array(dtype, sizes, out), Array(dtype, sizes),
            Array(dtype, sizes, out), epsilon(dtype)};
  auto& [x, y, dy, dx, eps] = c;
  x.random(static_cast<uint32_t>(dim) + 1, -spread, spread);
  dy.random(7);
  const std::string what = describe(dtype, sizes, layout) + " dim " + std::to_string(dim);
  logcumsumexp_forward({x.view(), y.view(), dim});
  logcumsumexp_backward({x.view(), dy.view(), dx.view(), dim});
  ASSERT_TRUE(y.gaps_untouched() && dx.gaps_untouched()) << what;
  int64_t inner = 1, all = 1;
  for (int d = 0; d < sizes.size(); ++d) {
    all *= sizes[d];
    inner *= d > dim ? sizes[d] : 1;
  }
  for (int64_t line = 0; sizes[dim] > 0 && line < all / sizes[dim]; ++line) {
    const int64_t first = line / inner * inner * sizes[dim] + line % inner;
    check_line(c, first, inner, sizes[dim], what);
  }
}

TEST(CumulativeLogSum, EveryDimensionLayoutAndDtype) {
  int turn = 0;
  for (const Dims& sizes : {Dims{7}, Dims{9, 11}, Dims{5, 1}, Dims{0, 3}, Dims{2, 9, 6, 5}}) {
    for (int dim = 0; dim < sizes.size(); ++dim) {
      for (DType dtype : floating_dtypes()) {
        for (Layout layout : kInputLayouts) {
          if (every_combination() || turn++ % 3 == 0) {
            for (double spread : {2., 100.}) {
              check(dtype, sizes, dim, spread, layout, Layout::step2);
              check(dtype, sizes, dim, spread, layout, Layout::transposed);
            }
          }
        }
      }
    }
  }
}

TEST(CumulativeLogSum, InPlace) {
  Array x(DType::f32, {4, 5}), y(DType::f32, {4, 5});
  x.random(3, -2, 2);
  logcumsumexp_forward({x.view(), y.view(), 0});
  logcumsumexp_forward({x.view(), x.view(), 0});
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(x[i], y[i]);
  }
}

TEST(CumulativeLogSum, BadArgumentsAreErrors) {
  Array x(DType::f32, {2, 3}), y(DType::f32, {3, 2}), h(DType::f16, {2, 3}), i(DType::i64, {2, 3});
  EXPECT_THROW(logcumsumexp_forward({x.view(), y.view(), 0}), Error);
  EXPECT_THROW(logcumsumexp_forward({x.view(), h.view(), 0}), Error);
  EXPECT_THROW(logcumsumexp_forward({i.view(), i.view(), 0}), Error);
  EXPECT_THROW(logcumsumexp_forward({x.view(), x.view(), 2}), Error);
  EXPECT_THROW(logcumsumexp_backward({x.view(), y.view(), x.view(), 0}), Error);
  EXPECT_THROW(logcumsumexp_backward({x.view(), x.view(), h.view(), 0}), Error);
  EXPECT_THROW(logcumsumexp_backward({i.view(), i.view(), i.view(), 0}), Error);
}

}  // namespace
}  // namespace binade::kernels::logcumsumexp_test
