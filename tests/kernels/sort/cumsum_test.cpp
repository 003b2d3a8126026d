// Compares cumulative sums along every dimension, both ways, with double; long lines in chunks.
#include <binade/kernels/sort/cumsum.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::cumsum_test {
namespace {

void check(DType dtype, const Dims& sizes, int dim, bool reverse, Layout layout, Layout out) {
  Array x(dtype, sizes, layout), y(dtype, sizes, out);
  x.random(static_cast<uint32_t>(dim) + 1, -2, 2);
  cumsum({x.view(), y.view(), dim, reverse});
  ASSERT_TRUE(y.gaps_untouched());
  int64_t inner = 1;
  for (int d = dim + 1; d < sizes.size(); ++d) {
    inner *= sizes[d];
  }
  const int64_t n = sizes[dim];
  for (int64_t line = 0; line < x.numel() / std::max<int64_t>(n, 1); ++line) {
    const int64_t first = line / inner * inner * n + line % inner;
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = first + (reverse ? n - 1 - k : k) * inner;
      sum += x[i];
      const double bound = is_floating(dtype) ? epsilon(dtype) * std::fabs(sum) +
                                                    4 * epsilon(compute_dtype(dtype)) *
                                                        std::sqrt(static_cast<double>(n)) * 4
                                              : 0;
      ASSERT_NEAR(y[i], sum, bound) << describe(dtype, sizes, layout) << " dim " << dim
                                    << (reverse ? " reverse" : "") << " element " << i;
    }
  }
}

TEST(Cumsum, EveryDimensionLayoutAndDtype) {
  int turn = 0;
  for (const Dims& sizes : {Dims{7}, Dims{33, 40}, Dims{5, 1}, Dims{0, 3}, Dims{2, 9, 6, 5}}) {
    for (int dim = 0; dim < sizes.size(); ++dim) {
      for (DType dtype :
           {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32}) {
        for (Layout layout : kInputLayouts) {
          if (every_combination() || turn++ % 5 == 0) {
            check(dtype, sizes, dim, turn % 2 == 0, layout, Layout::step2);
            check(dtype, sizes, dim, turn % 2 != 0, layout, Layout::transposed);
          }
        }
      }
    }
  }
}

TEST(Cumsum, LongLinesInTilesAndChunks) {
  for (const Dims& sizes :
       {Dims{1, 300}, Dims{1, 1025}, Dims{3, 9001}, Dims{9001, 3}, Dims{700, 2}}) {
    for (int dim : {0, 1}) {
      for (bool reverse : {false, true}) {
        check(DType::f32, sizes, dim, reverse, Layout::contiguous, Layout::contiguous);
      }
    }
    check(DType::i64, sizes, 1, true, Layout::padded, Layout::contiguous);
  }
}

TEST(Cumsum, InPlaceWrapsAndErrors) {
  Array x(DType::f32, {4, 300}), y(DType::f32, {4, 300});
  x.random(3);
  cumsum({x.view(), y.view(), 1});
  cumsum({x.view(), x.view(), 1});
  EXPECT_EQ(x.bytes(), y.bytes());
  TestValues<int64_t> big{INT64_MAX, 1};
  const View v = big.view(DType::i64, {2});
  cumsum({v, v, 0});
  EXPECT_EQ(big[1], INT64_MIN);
  Array other(DType::f64, {4, 300}), bools(DType::boolean, {4});
  EXPECT_THROW(cumsum({x.view(), y.view(), 2}), Error);
  EXPECT_THROW(cumsum({x.view(), other.view(), 1}), Error);
  EXPECT_THROW(cumsum({bools.view(), bools.view(), 0}), Error);
}

TEST(Cumsum, BitsDoNotDependOnThreadCount) {
  for (const Dims& sizes : {Dims{3, 40000}, Dims{40000, 3}}) {
    Array x(DType::f32, sizes), first(DType::f32, sizes);
    x.random(1);
    set_threads(1);
    cumsum({x.view(), first.view(), 1});
    for (int count : {2, 4}) {
      set_threads(count);
      Array again(DType::f32, sizes);
      cumsum({x.view(), again.view(), 1});
      EXPECT_EQ(again.bytes(), first.bytes());
    }
  }
  set_threads(0);
}

}  // namespace
}  // namespace binade::kernels::cumsum_test
