// grid_sample against sums over all pixels, forward and backward; special positions.
#include <binade/kernels/image/grid_sample.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::grid_sample_test {
namespace {

struct Case {
  DType dtype;
  Layout layout;
  GridRule rule;
  int64_t channels, height, width;
};

// One coordinate, folded into the image step by step; the slope is 0 where it was moved to it.
double position_of(double g, int64_t n, const GridRule& rule, double& slope) {
  double at = rule.align_corners ? (g + 1) / 2 * double(n - 1) : ((g + 1) * double(n) - 1) / 2;
  slope = double(rule.align_corners ? n - 1 : n) / 2;
  if (rule.padding == GridPadding::reflection) {
    const double low = rule.align_corners ? 0 : -0.5, high = double(n - 1) - low;
    while (low < high && (at < low || at > high)) {
      at = (at < low ? 2 * low : 2 * high) - at;
      slope = -slope;
    }
  }
  if (rule.padding != GridPadding::zeros && !(at > 0 && at < double(n - 1))) {
    at = at > 0 ? double(n - 1) : 0;
    slope = 0;
  }
  if (rule.mode == Interpolation::nearest) {
    at = std::nearbyint(at);
    slope = 0;
  }
  return at;
}

double hat(double distance) { return std::max(0.0, 1 - std::fabs(distance)); }
// The slope of hat(at - i) by `at`, from the right.
double hat_slope(double distance) {
  return distance >= -1 && distance < 0 ? 1 : distance >= 0 && distance < 1 ? -1 : 0;
}

void check_case(const Case& c) {
  const int64_t images = 2, rows = 3, columns = 7, h = c.height, w = c.width, channels = c.channels;
  const Dims image{images, channels, h, w}, result{images, channels, rows, columns},
      places{images, rows, columns, 2};
  Array x(c.dtype, image, c.layout), grid(c.dtype, places, c.layout), dy(c.dtype, result, c.layout);
  Array y(c.dtype, result, Layout::channels_last), dx(c.dtype, image, Layout::step2),
      dgrid(c.dtype, places, Layout::transposed);
  x.random(1);
  dy.random(3);
  grid.random(2, -1.6, 1.6);
  grid_sample_forward({x.view(), grid.view(), y.view(), c.rule});
  grid_sample_backward({x.view(), grid.view(), dy.view(), dx.view(), dgrid.view(), c.rule});
  ASSERT_TRUE(y.gaps_untouched() && dx.gaps_untouched() && dgrid.gaps_untouched());
  const std::string what = describe(c.dtype, image, c.layout);
  const double eps = epsilon(c.dtype) + 64 * epsilon(compute_dtype(c.dtype));
  std::vector<double> sums(size_t(element_count(image)));
  for (int64_t place = 0; place < images * rows * columns; ++place) {
    const int64_t n = place / (rows * columns), i = place % (rows * columns);
    double row_slope, column_slope;
    const double column = position_of(grid[2 * place], w, c.rule, column_slope),
                 row = position_of(grid[2 * place + 1], h, c.rule, row_slope);
    double vertical = 0, horizontal = 0, most = 1;
    for (int64_t k = 0; k < channels; ++k) {
      double value = 0;
      const double g = dy[(n * channels + k) * rows * columns + i];
      for (int64_t pixel = 0; pixel < h * w; ++pixel) {
        const int64_t at = (n * channels + k) * h * w + pixel;
        const double r = row - double(pixel / w), s = column - double(pixel % w);
        value += hat(r) * hat(s) * x[at];
        sums[size_t(at)] += hat(r) * hat(s) * g;
        vertical += g * x[at] * hat_slope(r) * hat(s);
        horizontal += g * x[at] * hat(r) * hat_slope(s);
        most += std::fabs(g);
      }
      ASSERT_NEAR(y[(n * channels + k) * rows * columns + i], value, 8 * eps)
          << what << " " << place;
    }
    const double wide = eps * most * double(h + w);
    ASSERT_NEAR(dgrid[2 * place], horizontal * column_slope, wide) << what << " " << place;
    ASSERT_NEAR(dgrid[2 * place + 1], vertical * row_slope, wide) << what << " " << place;
  }
  for (size_t at = 0; at < sums.size(); ++at) {
    ASSERT_NEAR(dx[int64_t(at)], sums[at], 8 * eps * (1 + std::fabs(sums[at])))
        << what << " " << at;
  }
}

TEST(GridSample, EveryRuleLayoutAndDtype) {
  int turn = 0;
  for (DType dtype : floating_dtypes()) {
    for (Layout layout : kInputLayouts) {
      for (Interpolation mode : {Interpolation::bilinear, Interpolation::nearest}) {
        for (GridPadding padding :
             {GridPadding::zeros, GridPadding::border, GridPadding::reflection}) {
          for (bool corners : {false, true}) {
            // Coordinates with stride 0 can lie where a position changes its pixel.
            if (layout == Layout::same_columns || (!every_combination() && turn++ % 2)) {
              continue;
            }
            check_case({dtype, layout, {mode, padding, corners}, 3, 5, 6});
            check_case({dtype, layout, {mode, padding, corners}, 1, 1, 4});
            check_case({dtype, layout, {mode, padding, corners}, 19, 2, 1});
          }
        }
      }
    }
  }
}

// Many positions in one pixel are added up in their order.
TEST(GridSample, ManyPositionsInOnePixel) {
  const int64_t count = 1000;
  Array x(DType::f32, {1, 2, 3, 3}), grid(DType::f32, {1, 1, count, 2}),
      dy(DType::f32, {1, 2, 1, count}), dx(DType::f32, {1, 2, 3, 3}),
      again(DType::f32, {1, 2, 3, 3});
  x.random(1);
  dy.random(2);
  double sums[2] = {};
  for (int64_t i = 0; i < 2 * count; ++i) {
    grid.set(i, 0);
    sums[i / count] += dy[i];
  }
  grid_sample_backward({x.view(), grid.view(), dy.view(), dx.view(), kNoView, {}});
  grid_sample_backward({x.view(), grid.view(), dy.view(), again.view(), kNoView, {}});
  for (int64_t i = 0; i < 18; ++i) {
    EXPECT_NEAR(dx[i], i % 9 == 4 ? sums[i / 9] : 0, 1e-4) << i;
    EXPECT_EQ(dx[i], again[i]);
  }
}

TEST(GridSample, NanAndInfinity) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = INFINITY;
  const double columns[] = {nan, infinity, -infinity, 1e30, 1. / 3};
  const double wanted[3][5] = {{0.5, 0, 0, 0, 3}, {1, 3, 1, 3, 3}, {1, 1, 1, nan, 3}};
  for (DType dtype : floating_dtypes()) {
    for (int padding = 0; padding < 3; ++padding) {
      Array x(dtype, {1, 1, 1, 3}), grid(dtype, {1, 1, 5, 2}), y(dtype, {1, 1, 1, 5});
      for (int64_t i = 0; i < 3; ++i) {
        x.set(i, double(i + 1));
      }
      for (int64_t i = 0; i < 5; ++i) {
        grid.set(2 * i, i == 4 ? 2. / 3 : columns[i]);
        grid.set(2 * i + 1, 0);
      }
      grid_sample_forward({x.view(),
                           grid.view(),
                           y.view(),
                           {Interpolation::bilinear, GridPadding(padding), false}});
      for (int64_t i = 0; i < 5; ++i) {
        if (!std::isnan(wanted[padding][i])) {  // else any element
          EXPECT_NEAR(y[i], wanted[padding][i], 0.03) << to_string(dtype) << padding << " " << i;
        }
        EXPECT_TRUE(std::isfinite(y[i]));
      }
    }
  }
}

// An element whose weight is 0 does not count, not even an infinity.
TEST(GridSample, AWeightOfZeroLeavesOut) {
  Array x(DType::f32, {1, 1, 1, 3}), grid(DType::f32, {1, 1, 1, 2}), y(DType::f32, {1, 1, 1, 1});
  x.set(0, -INFINITY);
  x.set(1, 2);
  x.set(2, INFINITY);
  grid.set(0, 0);
  grid.set(1, 0);
  grid_sample_forward({x.view(), grid.view(), y.view(), {}});
  EXPECT_EQ(y[0], 2);
}

TEST(GridSample, BadArgumentsAreErrors) {
  Array x(DType::f32, {2, 3, 4, 5}), grid(DType::f32, {2, 6, 7, 2}), y(DType::f32, {2, 3, 6, 7}),
      three(DType::f32, {2, 6, 7, 3}), half(DType::f16, {2, 3, 6, 7}),
      none(DType::f32, {2, 3, 0, 5});
  EXPECT_THROW(grid_sample_forward({x.view(), three.view(), y.view(), {}}), Error);
  EXPECT_THROW(grid_sample_forward({x.view(), grid.view(), half.view(), {}}), Error);
  EXPECT_THROW(grid_sample_forward({x.view(), grid.view(), x.view(), {}}), Error);
  EXPECT_THROW(grid_sample_forward({none.view(), grid.view(), y.view(), {}}), Error);
  EXPECT_THROW(grid_sample_backward({x.view(), grid.view(), y.view(), y.view(), kNoView, {}}),
               Error);
  EXPECT_THROW(grid_sample_backward({x.view(), grid.view(), y.view(), kNoView, x.view(), {}}),
               Error);
}

}  // namespace
}  // namespace binade::kernels::grid_sample_test
