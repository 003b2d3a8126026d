// Compares triangle with plain loops: every layout, several dtypes and diagonals; in place; errors.
#include <binade/kernels/copy/triangle.h>
#include <gtest/gtest.h>

#include "tests/kernels/support/layouts.h"

namespace binade::kernels::triangle_test {
namespace {

void check_triangle(DType dtype, const Dims& sizes, Layout x_layout, Layout y_layout) {
  const int last = sizes.size() - 1;
  for (int64_t diagonal : {int64_t{0}, int64_t{-1}, int64_t{3}, INT64_MAX, INT64_MIN}) {
    for (bool upper : {false, true}) {
      Array x(dtype, sizes, x_layout), y(dtype, sizes, y_layout);
      x.random(1, 1, 100);
      triangle({x.view(), y.view(), diagonal, upper});
      ASSERT_TRUE(y.gaps_untouched());
      for (int64_t i = 0; i < x.numel(); ++i) {
        const int64_t beyond = i % sizes[last] - i / sizes[last] % sizes[last - 1];
        const bool kept = upper ? beyond >= diagonal : beyond <= diagonal;
        ASSERT_EQ(y[i], kept ? x[i] : 0)
            << describe(dtype, sizes, y_layout) << " diagonal " << diagonal << " element " << i;
      }
    }
  }
}

TEST(Triangle, MatchesLoops) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::u8}) {
    for (Layout layout : kOutputLayouts) {
      check_triangle(dtype, {2, 5, 7}, layout, Layout::contiguous);
      check_triangle(dtype, {33, 4}, Layout::transposed, layout);
    }
  }
  check_triangle(DType::f32, {0, 3}, Layout::contiguous, Layout::contiguous);
  check_triangle(DType::i64, {2, 2, 1, 3}, Layout::same_columns, Layout::step2);
  check_triangle(DType::bf16, {40, 300}, Layout::same_rows, Layout::contiguous);
}

TEST(Triangle, InPlace) {
  Array x(DType::f32, {5, 5});
  x.random(1, 1, 2);
  triangle({x.view(), x.view(), 0, true});
  EXPECT_EQ(x[5], 0);
  EXPECT_GT(x[6], 0);
}

TEST(Triangle, Errors) {
  Array x(DType::f32, {4}), y(DType::f32, {2, 2}), z(DType::f16, {2, 2});
  EXPECT_THROW(triangle({x.view(), x.view(), 0, true}), Error);
  EXPECT_THROW(triangle({y.view(), z.view(), 0, true}), Error);
}

}  // namespace
}  // namespace binade::kernels::triangle_test
