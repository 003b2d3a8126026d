// Compares running maxima and minima along every dimension with plain loops: every dtype and
// layout, ties, NaN.
#include <binade/kernels/sort/cumextreme.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::cumextreme_test {
namespace {

// The offset of element k of a line, row-major: first + k * inner.
void check_lines(Array& x, Array& values, Array& indices, int dim, bool smallest,
                 const std::string& what) {
  const Dims sizes = x.view().sizes;
  int64_t inner = 1, all = 1;
  for (int d = 0; d < sizes.size(); ++d) {
    all *= sizes[d];
    inner *= d > dim ? sizes[d] : 1;
  }
  for (int64_t line = 0; sizes[dim] > 0 && line < all / sizes[dim]; ++line) {
    const int64_t first = line / inner * inner * sizes[dim] + line % inner;
    int64_t best = 0;
    for (int64_t k = 0; k < sizes[dim]; ++k) {
      const double a = x[first + k * inner], b = x[first + best * inner];
      best = (smallest ? a <= b : a >= b) ? k : best;
      ASSERT_EQ(values[first + k * inner], x[first + best * inner]) << what << " element " << k;
      ASSERT_EQ(indices[first + k * inner], double(best)) << what << " element " << k;
    }
  }
}

TEST(CumulativeExtreme, EveryDimensionLayoutAndDtype) {
  int turn = 0;
  for (const Dims& sizes : {Dims{7}, Dims{9, 11}, Dims{5, 1}, Dims{0, 3}, Dims{2, 9, 6, 5}}) {
    for (int dim = 0; dim < sizes.size(); ++dim) {
      for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32,
                          DType::u8, DType::boolean}) {
        for (Layout layout : kInputLayouts) {
          const bool smallest = turn % 2 == 1;
          if (!every_combination() && turn++ % 3 != 0) {
            continue;
          }
          for (Layout out : {Layout::step2, Layout::transposed}) {
            Array x(dtype, sizes, layout), values(dtype, sizes, out),
                indices(DType::i64, sizes, out);
            x.random(static_cast<uint32_t>(dim) + 1, 0, 6);
            cumextreme({x.view(), values.view(), indices.view(), dim, smallest});
            const std::string what = describe(dtype, sizes, layout) + " dim " + std::to_string(dim);
            ASSERT_TRUE(values.gaps_untouched() && indices.gaps_untouched()) << what;
            check_lines(x, values, indices, dim, smallest, what);
          }
        }
      }
    }
  }
}

// The indices of the values of one line.
std::vector<double> indices_of(const std::vector<double>& line, DType dtype, bool smallest) {
  const auto n = static_cast<int64_t>(line.size());
  Array x(dtype, {n}), values(dtype, {n}), indices(DType::i64, {n});
  for (int64_t i = 0; i < n; ++i) {
    x.set(i, line[static_cast<size_t>(i)]);
  }
  cumextreme({x.view(), values.view(), indices.view(), 0, smallest});
  std::vector<double> result;
  for (int64_t i = 0; i < n; ++i) {
    const double chosen = line[static_cast<size_t>(indices[i])];
    EXPECT_TRUE(values[i] == chosen || (std::isnan(values[i]) && std::isnan(chosen)));
    result.push_back(indices[i]);
  }
  return result;
}

TEST(CumulativeExtreme, TiesAndNan) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (DType dtype : floating_dtypes()) {
    EXPECT_EQ(indices_of({2, 2, 1, 2, 3}, dtype, false), (std::vector<double>{0, 1, 1, 3, 4}));
    EXPECT_EQ(indices_of({2, 2, 1, 2, 1}, dtype, true), (std::vector<double>{0, 1, 2, 2, 4}));
    for (bool smallest : {false, true}) {  // after a NaN only another one is chosen
      EXPECT_EQ(indices_of({1, kNaN, 5, kNaN, -5}, dtype, smallest),
                (std::vector<double>{0, 1, 1, 3, 3}));
    }
  }
}

TEST(CumulativeExtreme, BadArgumentsAreErrors) {
  Array x(DType::f32, {2, 3}), y(DType::f32, {3, 2}), i(DType::i64, {2, 3}), h(DType::f16, {2, 3});
  EXPECT_THROW(cumextreme({x.view(), y.view(), i.view(), 0}), Error);
  EXPECT_THROW(cumextreme({x.view(), h.view(), i.view(), 0}), Error);
  EXPECT_THROW(cumextreme({x.view(), x.view(), x.view(), 0}), Error);
  EXPECT_THROW(cumextreme({x.view(), x.view(), i.view(), 2}), Error);
}

}  // namespace
}  // namespace binade::kernels::cumextreme_test
