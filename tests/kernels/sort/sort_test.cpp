// Compares sort and topk along every dimension with a stable sort of doubles: ties, NaN,
// infinities, lines shorter and longer than a tile, and the gradients.
#include <binade/kernels/sort/sort.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::sort_test {
namespace {

constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16,
                             DType::i64, DType::i32, DType::u8,  DType::boolean};

struct Trial {
  DType dtype;
  Dims sizes;
  int dim;
  int64_t k;  // -1: sort
  bool descending;
  Layout layout = Layout::contiguous;
};

// The sorted order of a line: NaN counts as the largest value, ties are ordered by index.
std::vector<int64_t> order_of(const std::vector<double>& line, bool descending) {
  std::vector<int64_t> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  const auto less = [&](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    const double a = line[static_cast<size_t>(i)], b = line[static_cast<size_t>(j)];
    return descending ? less(b, a) : less(a, b);
  });
  return order;
}

void check_lines(const Trial& t, Array& x) {
  Dims out = t.sizes;
  out[t.dim] = t.k < 0 ? out[t.dim] : t.k;
  Array values(t.dtype, out, Layout::step2), indices(DType::i64, out, Layout::transposed);
  if (t.k < 0) {
    sort({x.view(), values.view(), indices.view(), t.dim, t.descending});
  } else {
    topk({x.view(), values.view(), indices.view(), t.dim, t.descending});
  }
  ASSERT_TRUE(values.gaps_untouched() && indices.gaps_untouched());
  int64_t inner = 1;
  for (int d = t.dim + 1; d < t.sizes.size(); ++d) {
    inner *= t.sizes[d];
  }
  const int64_t n = t.sizes[t.dim], k = out[t.dim];
  for (int64_t l = 0; l < x.numel() / std::max<int64_t>(n, 1); ++l) {
    const int64_t first = l / inner * inner * n + l % inner;
    const int64_t to = l / inner * inner * k + l % inner;
    std::vector<double> line;
    for (int64_t i = 0; i < n; ++i) {
      line.push_back(x[first + i * inner]);
    }
    const std::vector<int64_t> order = order_of(line, t.descending);
    for (int64_t i = 0; i < k; ++i) {
      const int64_t from = order[static_cast<size_t>(i)];
      const double got = values[to + i * inner], want = line[static_cast<size_t>(from)];
      const std::string what = text(describe(t.dtype, t.sizes, t.layout), " dim ", t.dim, " k ",
                                    t.k, t.descending ? " descending" : "", " line ", l, " at ", i);
      ASSERT_EQ(indices[to + i * inner], static_cast<double>(from)) << what;
      ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << what;
    }
  }
}

// Uses whole numbers, so that there are ties.
void check(const Trial& t) {
  Array x(t.dtype, t.sizes, t.layout);
  const double low = t.dtype == DType::u8 || t.dtype == DType::boolean ? 0 : -60;
  x.random(static_cast<uint32_t>(x.numel()), low, t.dtype == DType::boolean ? 1.99 : 60);
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.set(i, std::trunc(x[i]));
  }
  check_lines(t, x);
}

TEST(Sort, EveryDimensionLayoutAndDtype) {
  int turn = 0;
  for (const Dims& sizes :
       {Dims{1}, Dims{7}, Dims{33, 40}, Dims{5, 1}, Dims{0, 3}, Dims{2, 9, 6}}) {
    for (int dim = 0; dim < sizes.size(); ++dim) {
      for (DType dtype : kDTypes) {
        for (Layout layout : kInputLayouts) {
          if (every_combination() || turn % 11 == 0) {
            check({dtype, sizes, dim, -1, turn % 2 == 0, layout});
            check({dtype, sizes, dim, (sizes[dim] + 1) / 2, turn % 3 == 0, layout});
          }
          ++turn;
        }
      }
    }
  }
}

TEST(Sort, LinesAroundTilesAndRuns) {
  for (int64_t n : {255, 256, 257, 1023, 1024, 1025, 2048, 3000, 5121}) {
    for (DType dtype : {DType::f32, DType::f64}) {
      const bool descending = n % 2 == 0;
      if (every_combination() || dtype == DType::f32 || n == 3000) {
        check({dtype, {2, n}, 1, -1, descending});
      }
      if (every_combination() || n > 2000) {
        check({dtype, {n, 2}, 0, 5, descending});
        check({dtype, {n}, 0, 255, !descending});
        check({dtype, {n}, 0, std::min<int64_t>(n, 300), descending});
      }
    }
  }
  check({DType::f32, {3}, 0, 0, true});
  check({DType::f32, {3, 2000}, 1, 2000, true});
}

TEST(Sort, NanIsLargestAndZerosAreEqual) {
  for (DType dtype : floating_dtypes()) {
    for (int64_t n : {9, 2500}) {
      Array x(dtype, {n});
      const double special[] = {NAN, 0, -0.0, INFINITY, -INFINITY, -NAN, 1, -1};
      for (int64_t i = 0; i < n; ++i) {
        x.set(i, special[i * i % 8]);
      }
      for (bool descending : {false, true}) {
        check_lines({dtype, {n}, 0, -1, descending}, x);
        check_lines({dtype, {n}, 0, 4, descending}, x);
      }
    }
  }
  TestValues<int64_t> ends{5, INT64_MIN, INT64_MAX, -1}, values{0, 0, 0, 0}, order{0, 0, 0, 0};
  const Dims four{4};
  sort({ends.view(DType::i64, four), values.view(DType::i64, four), order.view(DType::i64, four),
        0});
  EXPECT_EQ(values[0], INT64_MIN);
  EXPECT_EQ(values[3], INT64_MAX);
  EXPECT_EQ(order[3], 2);
}

TEST(Sort, BadArgumentsAreErrors) {
  Array x(DType::f32, {3, 4}), y(DType::f32, {3, 4}), few(DType::f32, {3, 2}),
      many(DType::f32, {3, 5});
  Array at(DType::i64, {3, 4}), few_at(DType::i64, {3, 2}), many_at(DType::i64, {3, 5});
  EXPECT_THROW(sort({x.view(), y.view(), at.view(), 2}), Error);
  EXPECT_THROW(sort({x.view(), few.view(), few_at.view(), 1}), Error);
  EXPECT_THROW(sort({x.view(), y.view(), y.view(), 1}), Error);
  EXPECT_THROW(topk({x.view(), many.view(), many_at.view(), 1}), Error);
  EXPECT_THROW(topk({x.view(), few.view(), few_at.view(), 0}), Error);
}

TEST(Sort, BitsDoNotDependOnThreadCount) {
  Array x(DType::f32, {50, 3000});
  x.random(4);
  set_threads(1);
  Array first(DType::f32, {50, 3000}), order(DType::i64, {50, 3000});
  sort({x.view(), first.view(), order.view(), 1});
  set_threads(4);
  Array again(DType::f32, {50, 3000}), same(DType::i64, {50, 3000});
  sort({x.view(), again.view(), same.view(), 1});
  set_threads(0);
  EXPECT_EQ(again.bytes(), first.bytes());
  EXPECT_EQ(same.bytes(), order.bytes());
}

}  // namespace
}  // namespace binade::kernels::sort_test
