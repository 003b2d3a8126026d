// Compares interpolate with loops over all pixels in double, forward and backward; layouts; dtypes.
#include <binade/kernels/image/interpolate.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::interpolate_test {
namespace {

struct Case {
  int64_t n, c, h, w, p, q;
  Interpolation mode;
  bool corners = false;
};

double weight(int64_t i, int64_t h, int64_t source, int64_t result, const Case& c) {
  const double n = double(source), m = double(result);
  if (c.mode == Interpolation::nearest) {
    return i * source / result == h;
  }
  const double at = c.corners ? (result > 1 ? double(i) * (n - 1) / (m - 1) : 0)
                              : std::max(0.0, (double(i) + 0.5) * n / m - 0.5);
  return std::max(0.0, 1 - std::fabs(std::min(at, n - 1) - double(h)));
}

void check_case(const Case& c, DType dtype, Layout x_layout, Layout y_layout) {
  Array x(dtype, {c.n, c.c, c.h, c.w}, x_layout), y(dtype, {c.n, c.c, c.p, c.q}, y_layout);
  Array dy = y, dx(dtype, {c.n, c.c, c.h, c.w}, y_layout);
  x.random(1);
  dy.random(2);
  interpolate_forward({x.view(), y.view(), c.mode, c.corners});
  interpolate_backward({dy.view(), dx.view(), c.mode, c.corners});
  ASSERT_TRUE(y.gaps_untouched() && dx.gaps_untouched());
  std::vector<double> want_y(static_cast<size_t>(y.numel())),
      want_dx(static_cast<size_t>(x.numel()));
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t row = i / c.q % c.p, col = i % c.q, plane = i / (c.p * c.q);
    for (int64_t j = 0; j < c.h * c.w; ++j) {
      const double part = weight(row, j / c.w, c.h, c.p, c) * weight(col, j % c.w, c.w, c.q, c);
      const int64_t source = plane * c.h * c.w + j;
      want_y[static_cast<size_t>(i)] += part * x[source];
      want_dx[static_cast<size_t>(source)] += part * dy[i];
    }
  }
  const double scale = 3.0 * double((c.p / c.h + 1) * (c.q / c.w + 1));
  const double y_bound = 3 * epsilon(dtype) + 24 * epsilon(compute_dtype(dtype));
  const std::string what = describe(dtype, {c.h, c.w, c.p, c.q}, y_layout) + " mode " +
                           std::to_string(int(c.mode)) + (c.corners ? " corners" : "");
  for (int64_t i = 0; i < y.numel(); ++i) {
    ASSERT_NEAR(y[i], want_y[static_cast<size_t>(i)], y_bound) << what << " element " << i;
  }
  for (int64_t i = 0; i < x.numel(); ++i) {
    ASSERT_NEAR(dx[i], want_dx[static_cast<size_t>(i)], scale * y_bound) << what << " dx " << i;
  }
}

std::vector<Case> cases(int64_t n, int64_t c, int64_t h, int64_t w, int64_t p, int64_t q) {
  return {{n, c, h, w, p, q, Interpolation::nearest},
          {n, c, h, w, p, q, Interpolation::bilinear},
          {n, c, h, w, p, q, Interpolation::bilinear, true}};
}

TEST(Interpolate, SizesAndModes) {
  const int64_t sizes[][4] = {{4, 5, 8, 10}, {7, 9, 3, 4}, {1, 1, 3, 5}, {5, 6, 5, 6},
                              {8, 3, 1, 7},  {1, 9, 4, 1}, {2, 3, 1, 1}, {3, 2, 13, 11}};
  for (const auto& s : sizes) {
    for (const Case& c : cases(1, 3, s[0], s[1], s[2], s[3])) {
      for (DType dtype : floating_dtypes()) {
        check_case(c, dtype, Layout::contiguous, Layout::contiguous);
      }
    }
  }
}

TEST(Interpolate, Layouts) {
  for (Layout layout : kOutputLayouts) {
    for (const Case& c : cases(2, 5, 4, 3, 6, 7)) {
      check_case(c, DType::f32, layout, Layout::channels_last);
      check_case(c, DType::f16, Layout::channels_last, layout);
      check_case(c, DType::f32, Layout::same_rows, layout);
    }
  }
  for (const Case& c : cases(0, 5, 4, 3, 6, 7)) {
    check_case(c, DType::f32, Layout::contiguous, Layout::contiguous);
  }
}

TEST(Interpolate, ManyChannels) {
  for (const Case& c : cases(1, 130, 3, 4, 5, 3)) {
    check_case(c, DType::f32, Layout::channels_last, Layout::channels_last);
  }
}

// An element of weight 0 does not count, even if it is infinite: pixels beside it stay as they are.
TEST(Interpolate, WeightsOfZeroHideInfinities) {
  for (DType dtype : floating_dtypes()) {
    for (const bool corners : {false, true}) {
      Array x(dtype, {1, 1, 3, 3}, Layout::contiguous), y(dtype, {1, 1, 3, 5}, Layout::contiguous);
      Array dy = y, dx = x;
      for (int64_t i = 0; i < 9; ++i) {
        x.set(i, i == 4 ? std::numeric_limits<double>::infinity() : double(i));
      }
      interpolate_forward({x.view(), y.view(), Interpolation::bilinear, corners});
      for (int64_t i = 0; i < 15; ++i) {
        const bool infinite = i > 5 && i < 9;
        ASSERT_EQ(std::isinf(y[i]), infinite) << to_string(dtype) << corners << i << " " << y[i];
        ASSERT_FALSE(std::isnan(y[i])) << to_string(dtype) << corners << i;
      }
      for (int64_t i = 0; i < 15; ++i) {
        dy.set(i, i == 5 ? std::numeric_limits<double>::infinity() : 1.0);
      }
      interpolate_backward({dy.view(), dx.view(), Interpolation::bilinear, corners});
      for (int64_t i = 0; i < 9; ++i) {
        ASSERT_EQ(std::isinf(dx[i]), i == 3) << to_string(dtype) << corners << i << " " << dx[i];
        ASSERT_FALSE(std::isnan(dx[i])) << to_string(dtype) << corners << i;
      }
    }
  }
}

TEST(Interpolate, NarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

TEST(Interpolate, Errors) {
  Array x(DType::f32, {1, 2, 3, 3}), y(DType::f32, {1, 2, 0, 3}), z(DType::f32, {2, 2, 3, 3});
  const auto mode = Interpolation::nearest;
  EXPECT_THROW(interpolate_forward({x.view(), y.view(), mode}), Error);
  EXPECT_THROW(interpolate_forward({x.view(), z.view(), mode}), Error);
  EXPECT_THROW(interpolate_forward({x.view(), x.view(), mode, true}), Error);
  EXPECT_THROW(interpolate_backward({x.view(), z.view(), mode}), Error);
}

}  // namespace
}  // namespace binade::kernels::interpolate_test
