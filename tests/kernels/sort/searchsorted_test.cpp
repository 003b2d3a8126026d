// Compares the places of values in sorted rows with a count: every dtype, rows of 0 to many
// elements, ties, NaN and infinities.
#include <binade/kernels/sort/searchsorted.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::searchsorted_test {
namespace {

void sort_rows(Array& x, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<double> row;
    for (int64_t i = 0; i < n; ++i) {
      row.push_back(x[r * n + i]);
    }
    std::sort(row.begin(), row.end());
    for (int64_t i = 0; i < n; ++i) {
      x.set(r * n + i, row[static_cast<size_t>(i)]);
    }
  }
}

TEST(SearchSorted, EveryDtypeAndSize) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32,
                      DType::u8, DType::boolean}) {
    for (int64_t n : {0, 1, 2, 31, 1000}) {
      for (const auto& [rows, m] : {std::pair<int64_t, int64_t>{1, 700}, {3, 41}, {2, 0}}) {
        for (bool right : {false, true}) {
          Array x(dtype, {rows, n}), values(dtype, {rows, m}), y(DType::i64, {rows, m});
          x.random(3, 0, 40);
          values.random(4, 0, 45);
          sort_rows(x, rows, n);
          searchsorted({x.view(), values.view(), y.view(), right});
          for (int64_t i = 0; i < rows * m; ++i) {
            int64_t before = 0;
            for (int64_t k = 0; k < n; ++k) {
              const double element = x[i / m * n + k];
              before += right ? element <= values[i] : element < values[i];
            }
            ASSERT_EQ(y[i], double(before)) << to_string(dtype) << " " << n << " value " << i;
          }
        }
      }
    }
  }
}

TEST(SearchSorted, InfinitiesAndNan) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                   kNaN = std::numeric_limits<double>::quiet_NaN();
  const double sequence[] = {-kInfinity, -1, 2, kInfinity, kNaN};
  const double wanted[] = {-kInfinity, kInfinity, kNaN, 2};
  for (DType dtype : floating_dtypes()) {
    Array x(dtype, {1, 5}), values(dtype, {1, 4}), y(DType::i64, {1, 4});
    for (int64_t i = 0; i < 5; ++i) {
      x.set(i, sequence[i]);
    }
    for (int64_t i = 0; i < 4; ++i) {
      values.set(i, wanted[i]);
    }
    searchsorted({x.view(), values.view(), y.view()});
    EXPECT_EQ(y[0], 0);
    EXPECT_EQ(y[1], 3);
    EXPECT_EQ(y[2], 4);
    searchsorted({x.view(), values.view(), y.view(), true});
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], 4);
    EXPECT_EQ(y[2], 5);
    EXPECT_EQ(y[3], 3);
  }
}

TEST(SearchSorted, BadArgumentsAreErrors) {
  Array x(DType::f32, {2, 3}), v(DType::f32, {2, 4}), y(DType::i64, {2, 4}), w(DType::f64, {2, 4}),
      one(DType::f32, {3}), wide(DType::f32, {2, 4}, Layout::step2);
  EXPECT_THROW(searchsorted({x.view(), w.view(), y.view()}), Error);
  EXPECT_THROW(searchsorted({one.view(), v.view(), y.view()}), Error);
  EXPECT_THROW(searchsorted({x.view(), v.view(), v.view()}), Error);
  EXPECT_THROW(searchsorted({x.view(), wide.view(), y.view()}), Error);
}

}  // namespace
}  // namespace binade::kernels::searchsorted_test
