// Compares selection and interpolation with plain references: every layout and dtype, numbers in
// place of operands, broadcasts, sizes near vectors.
#include <binade/kernels/pointwise/ternary.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/layouts.h>
#include <tests/kernels/support/test_device.h>

#include <cmath>

#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::ternary_test {
namespace {

// Returns `value` rounded to a dtype.
double stored(DType dtype, double value) {
  Array one(dtype, {});
  one.set(0, value);
  return one[0];
}

void fill_mask(Array& mask, uint32_t seed) {
  std::mt19937 generator(seed);
  for (int64_t i = 0; i < mask.numel(); ++i) {
    mask.set(i, generator() % 2);
  }
}

// Skips some layouts of some dtypes if there is no time for all combinations.
bool left_out(DType dtype, const Dims& sizes, Layout layout) {
  return !every_combination() &&
         (dtype == DType::f64 || is_half(dtype) || !is_floating(dtype) ||
          element_count(sizes) > 2000) &&
         layout != Layout::contiguous;
}

TEST(Ternary, WhereInEveryDTypeAndLayout) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const DType dtype = static_cast<DType>(d);
    for (const Dims& sizes : test_shapes()) {
      for (Layout layout : kInputLayouts) {
        if (left_out(dtype, sizes, layout)) {
          continue;
        }
        const bool input_only = layout == Layout::same_rows || layout == Layout::same_columns;
        Array mask(DType::boolean, sizes, layout), a(dtype, sizes, layout), b(dtype, sizes);
        Array y(dtype, sizes, input_only ? Layout::contiguous : layout);
        fill_mask(mask, 1);
        a.random(2, 0, 100);
        b.random(3, 0, 100);
        where_forward({mask.view(), a.view(), b.view(), y.view()});
        for (int64_t i = 0; i < y.numel(); ++i) {
          ASSERT_EQ(y[i], mask[i] != 0 ? a[i] : b[i]) << describe(dtype, sizes, layout);
        }
        where_forward({mask.view(), kNoView, b.view(), y.view(), 7.3});
        for (int64_t i = 0; i < y.numel(); ++i) {
          ASSERT_EQ(y[i], mask[i] != 0 ? stored(dtype, 7.3) : b[i]);
        }
        where_forward({mask.view(), a.view(), kNoView, y.view(), 1});
        for (int64_t i = 0; i < y.numel(); ++i) {
          ASSERT_EQ(y[i], mask[i] != 0 ? a[i] : 1);
        }
        EXPECT_TRUE(y.gaps_untouched()) << describe(dtype, sizes, layout);
      }
    }
  }
}

TEST(Ternary, WhereAtSizesAndAddressesAroundVectors) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::u8}) {
    for (int64_t n : {1, 7, 8, 15, 16, 33, 257, 2049}) {
      for (int64_t offset : {0, 1, 8}) {
        Array mask(DType::boolean, {n}, Layout::contiguous, offset / 8);
        Array a(dtype, {n}, Layout::contiguous, offset), b(dtype, {n}), y(dtype, {n});
        fill_mask(mask, 4);
        a.random(2, 0, 100);
        b.random(3, 0, 100);
        where_forward({mask.view(), a.view(), b.view(), y.view()});
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(y[i], mask[i] != 0 ? a[i] : b[i]) << to_string(dtype) << " " << n;
        }
        EXPECT_TRUE(y.gaps_untouched());
      }
    }
  }
}

TEST(Ternary, Broadcasts) {
  const Dims sizes = {3, 4, 8};
  Array row(DType::boolean, {8}), a(DType::f32, sizes), b(DType::f32, {4, 1}), y(DType::f32, sizes);
  Array weight(DType::f32, {3, 1, 8});
  fill_mask(row, 5);
  a.random(1);
  b.random(2);
  weight.random(3, 0, 1);
  where_forward({row.view(), a.view(), b.view(), y.view()});
  for (int64_t i = 0; i < 96; ++i) {
    ASSERT_EQ(y[i], row[i % 8] != 0 ? a[i] : b[i / 8 % 4]);
  }
  lerp_forward({a.view(), b.view(), weight.view(), y.view()});
  for (int64_t i = 0; i < 96; ++i) {
    const double x = a[i], z = b[i / 8 % 4], w = weight[i / 32 * 8 + i % 8];
    ASSERT_NEAR(y[i], x + w * (z - x), 8 * epsilon(DType::f32));
  }
  Array wrong(DType::f32, {5});
  EXPECT_THROW(where_forward({row.view(), a.view(), wrong.view(), y.view()}), Error);
}

TEST(Ternary, LerpInEveryLayout) {
  for (DType dtype : floating_dtypes()) {
    for (const Dims& sizes : test_shapes()) {
      for (Layout layout : kInputLayouts) {
        if (left_out(dtype, sizes, layout)) {
          continue;
        }
        const bool input_only = layout == Layout::same_rows || layout == Layout::same_columns;
        Array a(dtype, sizes, layout), b(dtype, sizes), weight(dtype, sizes, layout);
        Array y(dtype, sizes, input_only ? Layout::contiguous : layout);
        a.random(1);
        b.random(2);
        weight.random(3, -0.5, 1.5);
        lerp_forward({a.view(), b.view(), weight.view(), y.view()});
        for (int64_t i = 0; i < y.numel(); ++i) {
          ASSERT_NEAR(y[i], a[i] + weight[i] * (b[i] - a[i]), 16 * epsilon(dtype))
              << describe(dtype, sizes, layout);
        }
        lerp_forward({a.view(), b.view(), kNoView, y.view(), 0.3});
        for (int64_t i = 0; i < y.numel(); ++i) {
          ASSERT_NEAR(y[i], a[i] + 0.3 * (b[i] - a[i]), 4 * epsilon(dtype));
        }
        EXPECT_TRUE(y.gaps_untouched());
      }
    }
  }
}

TEST(Ternary, LerpIsExactAtItsEnds) {
  Array a(DType::f32, {1000}), b(DType::f32, {1000}), y(DType::f32, {1000});
  a.random(1, -1e-3, 1e-3);
  b.random(2, -1e3, 1e3);
  lerp_forward({a.view(), b.view(), kNoView, y.view(), 0});
  EXPECT_EQ(y.bytes(), a.bytes());
  lerp_forward({a.view(), b.view(), kNoView, y.view(), 1});
  EXPECT_EQ(y.bytes(), b.bytes());
}

TEST(Ternary, InPlaceAndNan) {
  Array mask(DType::boolean, {100}), a(DType::f32, {100}), b(DType::f32, {100});
  fill_mask(mask, 6);
  a.random(1);
  const std::vector<std::byte> before = a.bytes();
  for (int64_t i = 0; i < 100; ++i) {
    b.set(i, NAN);  // the value that is not selected must have no effect
  }
  Array y(DType::f32, {100});
  where_forward({mask.view(), a.view(), b.view(), y.view()});
  where_forward({mask.view(), a.view(), b.view(), a.view()});
  for (int64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(std::isnan(a[i]), mask[i] == 0);
    ASSERT_EQ(std::isnan(y[i]), mask[i] == 0);
  }
  EXPECT_NE(a.bytes(), before);
}

TEST(Ternary, BitsDoNotDependOnThreadCount) {
  const int64_t n = 100003;
  Array mask(DType::boolean, {n}), a(DType::bf16, {n}), b(DType::bf16, {n}), w(DType::bf16, {n});
  fill_mask(mask, 7);
  a.random(1);
  b.random(2);
  w.random(3, 0, 1);
  Array first(DType::bf16, {n}), blend(DType::bf16, {n});
  set_threads(1);
  where_forward({mask.view(), a.view(), b.view(), first.view()});
  lerp_forward({a.view(), b.view(), w.view(), blend.view()});
  for (int count : {2, 4}) {
    set_threads(count);
    Array y(DType::bf16, {n}), z(DType::bf16, {n});
    where_forward({mask.view(), a.view(), b.view(), y.view()});
    lerp_forward({a.view(), b.view(), w.view(), z.view()});
    EXPECT_EQ(y.bytes(), first.bytes());
    EXPECT_EQ(z.bytes(), blend.bytes());
  }
  set_threads(0);
}

TEST(Ternary, BadArgumentsAreErrors) {
  Array mask(DType::boolean, {3}), a(DType::f32, {3}), b(DType::f64, {3}), i(DType::i64, {3});
  EXPECT_THROW(where_forward({a.view(), a.view(), a.view(), a.view()}), Error);
  EXPECT_THROW(where_forward({mask.view(), a.view(), b.view(), a.view()}), Error);
  EXPECT_THROW(where_forward({mask.view(), kNoView, kNoView, a.view()}), Error);
  EXPECT_THROW(lerp_forward({a.view(), b.view(), a.view(), a.view()}), Error);
  EXPECT_THROW(lerp_forward({i.view(), i.view(), i.view(), i.view()}), Error);
}

TEST(NarrowerIsas, TernaryPasses) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::ternary_test
