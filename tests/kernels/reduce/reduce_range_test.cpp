// Tests reductions with NaN, with a large mean, and near the ends of the range of float.
#include <tests/kernels/reduce/reduce_reference.h>
#include <tests/kernels/support/strided_array.h>

#include <utility>

namespace binade::kernels::reduce_range_test {
namespace {

// Shapes whose reduced elements are contiguous, strided, or in chunks.
const std::pair<Dims, Dims> kWays[] = {{{3}, {1}},           {{3, 1100}, {3, 1}},
                                       {{1100, 3}, {1, 3}},  {{2, 5, 700}, {1, 5, 1}},
                                       {{70000, 1}, {1, 1}}, {{9, 21}, {9, 1}}};

// PyTorch is within 0.4 epsilon here; a mean rounded to float would cost three digits.
TEST(ReduceRange, VarianceBesideAMeanOfAMillion) {
  for (const auto& [sizes, y_sizes] : kWays) {
    for (double mean : {1e6, -3e7}) {
      Array x(DType::f32, sizes), y(DType::f32, y_sizes), aux(DType::f64, y_sizes);
      x.random(5, mean - 40, mean + 40);
      const auto all = sequences(x, sizes, y_sizes);
      for (Reduce op : {Reduce::var, Reduce::std}) {
        reduce_forward(
            {.op = op, .x = x.view(), .y = y.view(), .aux = aux.view(), .correction = 1});
        for (size_t i = 0; i < all.size(); ++i) {
          const Expected e = moments(op, all[i], 1);
          ASSERT_NEAR(y[static_cast<int64_t>(i)], e.y, epsilon(DType::f32) * e.y)
              << to_string(op) << text(" of ", sizes, " to ", y_sizes);
          ASSERT_NEAR(aux[static_cast<int64_t>(i)], e.aux,
                      4 * epsilon(DType::f64) * std::fabs(e.aux));
        }
      }
    }
  }
  Array x(DType::f64, {3, 1100}), y(DType::f64, {3, 1});
  x.random(6, 1e9 - 2, 1e9 + 2);
  reduce_forward({.op = Reduce::var, .x = x.view(), .y = y.view()});
  const auto all = sequences(x, {3, 1100}, {3, 1});
  for (size_t i = 0; i < 3; ++i) {
    const double expected = moments(Reduce::var, all[i], 0).y;
    EXPECT_NEAR(y[static_cast<int64_t>(i)], expected, 1e-7 * expected);
  }
}

// The squares exceed the range of float, but the results do not.
TEST(ReduceRange, SquaresDoNotLeaveTheRange) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& [sizes, y_sizes] : kWays) {
      for (double scale : {1e25, 1e-25, 1e35, 1e-37}) {
        Array x(dtype, sizes), y(DType::f32, y_sizes);
        x.random(5, scale, 2 * scale);
        const auto all = sequences(x, sizes, y_sizes);
        for (Reduce op : {Reduce::std, Reduce::norm2}) {
          reduce_forward({.op = op, .x = x.view(), .y = y.view(), .correction = 0});
          for (size_t i = 0; i < all.size(); ++i) {
            const double expected = reference(op, all[i], 0).y;
            ASSERT_NEAR(y[static_cast<int64_t>(i)], expected, 4 * epsilon(DType::f32) * expected)
                << to_string(op) << " " << to_string(dtype) << text(" ", sizes, " to ", y_sizes);
          }
        }
      }
    }
  }
}

// aux counts the NaN elements: the gradient of max and min is shared among them.
TEST(ReduceRange, NaNIsEqualToNaN) {
  for (DType dtype : floating_dtypes()) {
    for (const auto& [sizes, y_sizes] : kWays) {
      Array x(dtype, sizes), y(dtype, y_sizes), aux(compute_dtype(dtype), y_sizes);
      x.random(3);
      for (int64_t i = x.numel() > 3 ? 5 : 0; i < x.numel(); i += 1 + x.numel() / 7) {
        x.set(i, NAN);
      }
      const auto all = sequences(x, sizes, y_sizes);
      for (Reduce op : {Reduce::max, Reduce::min, Reduce::norm_inf}) {
        reduce_forward({.op = op, .x = x.view(), .y = y.view(), .aux = aux.view()});
        for (size_t i = 0; i < all.size(); ++i) {
          const auto at = static_cast<int64_t>(i);
          const auto count =
              std::count_if(all[i].begin(), all[i].end(), [](double v) { return std::isnan(v); });
          ASSERT_EQ(std::isnan(y[at]), count > 0) << to_string(op) << text(" ", sizes);
          if (count > 0) {
            ASSERT_EQ(aux[at], static_cast<double>(count)) << to_string(op) << text(" ", sizes);
          }
        }
      }
    }
  }
}

TEST(ReduceRange, GradientOfNaN) {
  for (DType dtype : floating_dtypes()) {
    const DType wide = compute_dtype(dtype);
    Array x(dtype, {2, 40}), dx(dtype, {2, 40}), a(wide, {2, 1}), b(wide, {2, 1});
    x.random(1);
    x.set(7, NAN), x.set(11, NAN);
    a.set(0, 3), a.set(1, 5);
    b.set(0, NAN), b.set(1, x[45]);
    for (ReduceSlope op : {ReduceSlope::equal, ReduceSlope::equal_or_nan}) {
      reduce_backward({op, x.view(), a.view(), b.view(), dx.view()});
      for (int64_t i = 0; i < 80; ++i) {
        const double expected = slope(op, x[i], a[i / 40], b[i / 40]);
        ASSERT_TRUE(dx[i] == expected || (std::isnan(dx[i]) && std::isnan(expected)))
            << to_string(dtype) << " element " << i << ": " << dx[i] << ", expected " << expected;
      }
    }
    EXPECT_TRUE(std::isnan(dx[0]) && dx[45] == 5);
  }
}

TEST(NarrowerIsas, ReduceRangePasses) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::reduce_range_test
