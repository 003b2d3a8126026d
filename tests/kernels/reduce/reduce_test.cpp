// Compares reductions over every subset of dimensions with double; error growth, specials, argmax.
#include <binade/kernels/reduce/reduce.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::reduce_test {
namespace {

// The index of the result to which element i of x is reduced.
int64_t target(const Dims& x, const Dims& y, int64_t i) {
  int64_t at[kMaxDims];
  for (int d = x.size() - 1; d >= 0; --d) {
    at[d] = i % x[d];
    i /= x[d];
  }
  int64_t sum = 0;
  for (int d = 0; d < x.size(); ++d) {
    sum = sum * y[d] + (y[d] == 1 ? 0 : at[d]);
  }
  return sum;
}

std::vector<double> reference(Reduce op, const Array& x, const Dims& x_sizes, const Dims& y_sizes) {
  const int64_t n = element_count(y_sizes);
  const double start = op == Reduce::prod  ? 1
                       : op == Reduce::max ? -INFINITY
                       : op == Reduce::min ? INFINITY
                                           : 0;
  std::vector<long double> y(static_cast<size_t>(n), start);
  for (int64_t i = 0; i < x.numel(); ++i) {
    long double& t = y[static_cast<size_t>(target(x_sizes, y_sizes, i))];
    switch (op) {
      case Reduce::max: t = std::max<long double>(t, x[i]); break;
      case Reduce::min: t = std::min<long double>(t, x[i]); break;
      case Reduce::prod: t *= x[i]; break;
      default: t += x[i];
    }
  }
  for (long double& t : y) {
    t /= op == Reduce::mean ? static_cast<double>(x.numel()) / static_cast<double>(n) : 1;
  }
  return {y.begin(), y.end()};
}

void check_reduce(Reduce op, DType dtype, const Dims& sizes, const Dims& y_sizes, Layout x_layout,
                  Layout y_layout) {
  const DType result = op == Reduce::sum && !is_floating(dtype) ? DType::i64 : dtype;
  Array x(dtype, sizes, x_layout), y(result, y_sizes, y_layout);
  op == Reduce::prod
      ? x.random(1, is_floating(dtype) ? 0.999 : -2.9, is_floating(dtype) ? 1.001 : 2.9)
      : x.random(1, -20, 20);
  reduce_forward({op, x.view(), y.view()});
  ASSERT_TRUE(y.gaps_untouched());
  const std::vector<double> expected = reference(op, x, sizes, y_sizes);
  const double n = static_cast<double>(x.numel()) / static_cast<double>(expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const double scale = op == Reduce::sum ? 20 * std::sqrt(n) : op == Reduce::prod ? n : 20;
    const double bound =
        op == Reduce::max || op == Reduce::min
            ? 0
            : (epsilon(dtype) + epsilon(compute_dtype(dtype)) * (2 + std::log2(n + 1))) *
                  (scale + std::fabs(expected[i]));
    ASSERT_NEAR(y[static_cast<int64_t>(i)], expected[i], is_floating(dtype) ? bound : 0)
        << to_string(op) << " " << describe(dtype, sizes, x_layout) << " to " << to_string(y_sizes);
  }
}

TEST(Reduce, EverySubsetOfDimensionsAndLayout) {
  const Reduce ops[] = {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min, Reduce::prod};
  for (const Dims& sizes :
       {Dims{}, Dims{7}, Dims{33, 70}, Dims{3, 300}, Dims{2, 9, 6, 5}, Dims{3, 2, 1, 4, 5}}) {
    for (int mask = 0; mask < 1 << sizes.size(); ++mask) {
      Dims y_sizes = sizes;
      for (int d = 0; d < sizes.size(); ++d) {
        y_sizes[d] = mask >> d & 1 ? 1 : sizes[d];
      }
      for (Layout layout : kInputLayouts) {
        for (Reduce op : ops) {
          for (DType dtype : floating_dtypes()) {
            if (every_combination() || op == Reduce::mean || dtype == DType::f32) {
              check_reduce(op, dtype, sizes, y_sizes, layout, Layout::step2);
            }
          }
        }
        check_reduce(Reduce::max, DType::i64, sizes, y_sizes, layout, Layout::transposed);
        for (DType dtype : {DType::i64, DType::i32, DType::u8, DType::boolean}) {
          check_reduce(Reduce::sum, dtype, sizes, y_sizes, layout, Layout::padded);
        }
      }
    }
  }
}

TEST(Reduce, LargeShapesInChunks) {
  const Dims shapes[][2] = {
      {{1000, 129}, {1, 129}},          {{1000, 129}, {1000, 1}}, {{300007}, {1}},
      {{8, 16, 40, 41}, {1, 16, 1, 1}}, {{70000, 3}, {70000, 1}}, {{70000, 3}, {1, 3}},
      {{50, 700, 5}, {50, 1, 5}},       {{4, 70001}, {4, 1}}};
  for (const auto& [sizes, y_sizes] : shapes) {
    for (DType dtype : floating_dtypes()) {
      if (!every_combination() && dtype != DType::f32 && dtype != DType::f16) {
        continue;
      }
      for (Layout layout : {Layout::contiguous, Layout::channels_last, Layout::transposed}) {
        if (!every_combination() && dtype == DType::f16 && layout != Layout::contiguous) {
          continue;
        }
        check_reduce(Reduce::mean, dtype, sizes, y_sizes, layout, Layout::contiguous);
      }
    }
  }
}

// Covers lengths and output counts near warps, blocks and vectors, at any alignment.
TEST(Reduce, SizesAroundWarpsAndVectors) {
  for (DType dtype : {DType::f32, DType::f16}) {
    for (int64_t n : {1, 2, 15, 16, 17, 31, 33, 255, 257, 1023, 1025}) {
      for (int64_t m : {1, 3, 4, 31, 32, 40}) {
        for (int64_t offset : {0, 1}) {
          Array x(dtype, {n, m}, Layout::contiguous, offset), rows(dtype, {n, 1});
          Array columns(dtype, {1, m});
          x.random(1, -2, 2);
          reduce_forward({Reduce::sum, x.view(), columns.view()});
          reduce_forward({Reduce::max, x.view(), rows.view()});
          const std::vector<double> sums = reference(Reduce::sum, x, {n, m}, {1, m});
          const std::vector<double> most = reference(Reduce::max, x, {n, m}, {n, 1});
          for (int64_t i = 0; i < m; ++i) {
            ASSERT_NEAR(columns[i], sums[static_cast<size_t>(i)],
                        epsilon(dtype) * (std::fabs(columns[i]) + 1) + 1e-5 * std::sqrt(n))
                << to_string(dtype) << " " << n << " " << m;
          }
          for (int64_t i = 0; i < n; ++i) {
            ASSERT_EQ(rows[i], most[static_cast<size_t>(i)]) << n << " " << m;
          }
        }
      }
    }
  }
}

TEST(ArgMax, LongAndShortRows) {
  for (int64_t n : {1, 15, 16, 31, 63, 64, 255, 1023, 1024, 3001}) {
    for (int64_t m : {1, 3, 33}) {
      Array x(DType::f32, {n, m}), columns(DType::i64, {m}), rows(DType::i64, {n});
      x.random(7, 0, 1);
      for (int64_t i = 0; i < x.numel(); ++i) {
        x.set(i, std::floor(x[i] * 50));  // ties
      }
      argmax({x.view(), columns.view(), 0});
      argmax({x.view(), rows.view(), 1});
      const auto first_largest = [&](int64_t base, int64_t count, int64_t stride) {
        int64_t best = 0;
        for (int64_t k = 1; k < count; ++k) {
          best = x[base + k * stride] > x[base + best * stride] ? k : best;
        }
        return static_cast<double>(best);
      };
      for (int64_t i = 0; i < m; ++i) {
        ASSERT_EQ(columns[i], first_largest(i, n, m)) << n << " " << m;
      }
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(rows[i], first_largest(i * m, m, 1)) << n << " " << m;
      }
    }
  }
}

TEST(Reduce, ErrorStaysSmallOverAMillionTerms) {
  const int64_t count = every_combination() ? 1 << 20 : 1 << 17;
  Array x(DType::f32, {count}), y(DType::f32, {1});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.set(i, 0.1);
  }
  reduce_forward({Reduce::sum, x.view(), y.view()});
  const double exact = static_cast<double>(0.1f) * static_cast<double>(count);
  EXPECT_NEAR(y[0] / exact, 1, 4 * epsilon(DType::f32));
  Array ones(DType::f16, {100000, 2}), mean(DType::f16, {1, 2});
  for (int64_t i = 0; i < ones.numel(); ++i) {
    ones.set(i, 1);
  }
  reduce_forward({Reduce::mean, ones.view(), mean.view()});
  EXPECT_EQ(mean[0], 1);  // a sum in f16 would be infinite
}

TEST(Reduce, BitsDoNotDependOnThreadCount) {
  const Dims shapes[][2] = {{{200000}, {1}}, {{3000, 70}, {1, 70}}, {{70, 3000}, {70, 1}}};
  for (const auto& [sizes, y_sizes] : shapes) {
    Array x(DType::f32, sizes), first(DType::f32, y_sizes);
    x.random(1);
    set_threads(1);
    reduce_forward({Reduce::sum, x.view(), first.view()});
    for (int count : {2, 4}) {
      set_threads(count);
      Array again(DType::f32, y_sizes);
      reduce_forward({Reduce::sum, x.view(), again.view()});
      EXPECT_EQ(again.bytes(), first.bytes());
    }
  }
  set_threads(0);
}

TEST(Reduce, NothingAndNan) {
  Array x(DType::f32, {0, 3}), y(DType::f32, {1, 3});
  reduce_forward({Reduce::sum, x.view(), y.view()});
  EXPECT_EQ(y[2], 0);
  reduce_forward({Reduce::prod, x.view(), y.view()});
  EXPECT_EQ(y[0], 1);
  reduce_forward({Reduce::mean, x.view(), y.view()});
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_THROW(reduce_forward({Reduce::max, x.view(), y.view()}), Error);
  Array none(DType::f32, {0, 3}), kept(DType::f32, {0, 1});
  EXPECT_NO_THROW(reduce_forward({Reduce::max, none.view(), kept.view()}));
  for (int64_t n : {3, 100, 3000}) {
    for (int64_t at : {int64_t(0), n / 2, n - 1}) {
      Array v(DType::f32, {n}), m(DType::f32, {1});
      v.random(1);
      v.set(at, NAN);
      for (Reduce op : {Reduce::max, Reduce::min}) {
        reduce_forward({op, v.view(), m.view()});
        EXPECT_TRUE(std::isnan(m[0]));
      }
    }
  }
}

TEST(Reduce, IntegerSumsWrapAndBadArgumentsAreErrors) {
  TestValues<int64_t> x{INT64_MAX, 1}, y{0};
  const View xv = x.view(DType::i64, {2}), yv = y.view(DType::i64, {1});
  reduce_forward({Reduce::sum, xv, yv});
  EXPECT_EQ(y[0], INT64_MIN);
  EXPECT_THROW(reduce_forward({Reduce::mean, xv, yv}), Error);
  Array a(DType::f32, {3, 4}), b(DType::f32, {3, 2}), c(DType::f32, {3}), d(DType::f64, {3, 1});
  EXPECT_THROW(reduce_forward({Reduce::sum, a.view(), b.view()}), Error);
  EXPECT_THROW(reduce_forward({Reduce::sum, a.view(), c.view()}), Error);
  EXPECT_THROW(reduce_forward({Reduce::sum, a.view(), d.view()}), Error);
}

TEST(ArgMax, FirstOfTiesInEveryDimension) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32}) {
    const Dims sizes = {4, 3, 6};
    for (Layout layout : kInputLayouts) {
      Array x(dtype, sizes, layout);
      x.random(3, -4, 4);
      for (int64_t i = 0; i < x.numel(); ++i) {
        x.set(i, std::trunc(x[i]));  // ties
      }
      for (int dim = 0; dim < 3; ++dim) {
        Dims kept = sizes, dropped;
        kept[dim] = 1;
        for (int d = 0; d < 3; ++d) {
          if (d != dim) {
            dropped.push_back(sizes[d]);
          }
        }
        Array y(DType::i64, kept, Layout::transposed), z(DType::i64, dropped, Layout::step2);
        argmax({x.view(), y.view(), dim});
        argmax({x.view(), z.view(), dim});
        const int64_t inner = dim == 0 ? 18 : dim == 1 ? 6 : 1;
        for (int64_t o = 0; o < y.numel(); ++o) {
          const int64_t base = o / inner * inner * sizes[dim] + o % inner;
          int64_t best = 0;
          for (int64_t k = 1; k < sizes[dim]; ++k) {
            best = x[base + k * inner] > x[base + best * inner] ? k : best;
          }
          ASSERT_EQ(y[o], static_cast<double>(best))
              << describe(dtype, sizes, layout) << " " << dim;
          ASSERT_EQ(z[o], static_cast<double>(best));
        }
      }
    }
  }
}

TEST(ArgMax, NanWinsAndErrors) {
  TestValues<float> x{1, NAN, 9, NAN};
  TestValues<int64_t> y{0};
  const View out = y.view(DType::i64, {});
  argmax({x.view(DType::f32, {4}), out, 0});
  EXPECT_EQ(y[0], 1);
  EXPECT_THROW(argmax({x.view(DType::f32, {4}), out, 1}), Error);
  EXPECT_THROW(argmax({x.view(DType::f32, {0}), out, 0}), Error);
  EXPECT_THROW(argmax({x.view(DType::f32, {2, 2}), out, 0}), Error);
}

TEST(NarrowerIsas, ReducePasses) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::reduce_test
