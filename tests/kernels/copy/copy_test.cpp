// Tests copies between all dtypes and layouts, fills, and accumulation.
#include <binade/kernels/copy/copy.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::copy_test {
namespace {

constexpr DType kAllDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16,
                                DType::i64, DType::i32, DType::u8,  DType::boolean};

// Returns x rounded to `dtype`.
double stored(DType dtype, double x) {
  return dispatch("test", dtype, [&]<class T>(Type<T>) { return static_cast<double>(T(x)); });
}

double low_of(DType dtype) { return dtype == DType::u8 || dtype == DType::boolean ? 0 : -90; }

TEST(Copy, EveryPairOfDTypesAndLayouts) {
  for (DType from : kAllDTypes) {
    for (DType to : kAllDTypes) {
      const bool to_unsigned = to == DType::u8;
      for (const Dims& sizes : test_shapes()) {
        for (Layout x_layout : kInputLayouts) {
          Array x(from, sizes, x_layout);
          x.random(1, to_unsigned ? 0 : low_of(from), 90);
          for (Layout y_layout : kOutputLayouts) {
            if (!every_combination() && x_layout != Layout::contiguous &&
                y_layout != Layout::contiguous && from != DType::f32 && to != DType::u8) {
              continue;
            }
            Array y(to, sizes, y_layout);
            copy({.x = x.view(), .y = y.view()});
            ASSERT_TRUE(y.gaps_untouched()) << describe(to, sizes, y_layout);
            for (int64_t i = 0; i < x.numel(); ++i) {
              ASSERT_EQ(y[i], stored(to, x[i]))
                  << describe(from, sizes, x_layout) << " to " << describe(to, sizes, y_layout);
            }
          }
        }
      }
    }
  }
}

// True if the bits agree, or if both are NaN: GPUs turn every NaN into the same one.
bool same_half(DType dtype, uint16_t got, uint16_t expected) {
  const auto is_nan = [&](uint16_t bits) {
    return dtype == DType::f16 ? std::isnan(static_cast<float>(half::from_bits(bits)))
                               : std::isnan(static_cast<float>(bfloat16::from_bits(bits)));
  };
  return got == expected || (!test_device().is_cpu() && is_nan(got) && is_nan(expected));
}
bool same_float(float got, float expected) {
  return std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(expected) ||
         (!test_device().is_cpu() && std::isnan(got) && std::isnan(expected));
}

TEST(Copy, EveryHalfValueIsBitExact) {
  std::vector<uint16_t> bits(65536);
  TestValues<float> wide(65536);
  TestValues<uint16_t> back(65536);
  for (size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<uint16_t>(i);
  }
  TestValues<uint16_t> device_bits(bits);
  for (DType dtype : {DType::f16, DType::bf16}) {
    const View narrow = device_bits.view(dtype, {65536});
    const View value = wide.view(DType::f32, {65536});
    copy({.x = narrow, .y = value});
    copy({.x = value, .y = back.view(dtype, {65536})});
    for (size_t i = 0; i < bits.size(); ++i) {
      const float expected = dtype == DType::f16 ? static_cast<float>(half::from_bits(bits[i]))
                                                 : static_cast<float>(bfloat16::from_bits(bits[i]));
      ASSERT_TRUE(same_float(wide[i], expected)) << i << ": " << wide[i];
      const uint16_t again = dtype == DType::f16 ? half(expected).bits : bfloat16(expected).bits;
      ASSERT_TRUE(same_half(dtype, back[i], again)) << i << ": " << back[i];
    }
  }
}

TEST(Copy, FloatsRoundBitExactly) {
  std::vector<float> x;
  for (uint64_t step = 0; step < (uint64_t(1) << 32);
       step += every_combination() ? 30011 : 1200007) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(step)));
  }
  for (uint32_t i = 0; i < 0x7c00; ++i) {  // ties in both formats
    const float low = static_cast<float>(half::from_bits(static_cast<uint16_t>(i)));
    const float high = static_cast<float>(half::from_bits(static_cast<uint16_t>(i + 1)));
    x.push_back(i == 0x7bff ? 65520.0f : (low + high) / 2);
    x.push_back(std::bit_cast<float>(i << 16 | 0x8000u));
  }
  const auto n = static_cast<int64_t>(x.size());
  TestValues<float> values(x);
  TestValues<uint16_t> y(x.size());
  const View from = values.view(DType::f32, {n});
  copy({.x = from, .y = y.view(DType::f16, {n})});
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(same_half(DType::f16, y[i], half(x[i]).bits)) << x[i] << ": " << y[i];
  }
  copy({.x = from, .y = y.view(DType::bf16, {n})});
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(same_half(DType::bf16, y[i], bfloat16(x[i]).bits)) << x[i] << ": " << y[i];
  }
}

TEST(Copy, DoubleIsRoundedOnce) {
  TestValues<double> x{1 + 0x1p-11 + 0x1p-40};  // rounding to float first would make it a tie
  TestValues<half> y(1);
  copy({.x = x.view(DType::f64, {}), .y = y.view(DType::f16, {})});
  EXPECT_EQ(static_cast<double>(y[0]), 1 + 0x1p-10);
}

TEST(Copy, FloatToIntegerTruncatesAndSaturates) {
  const double inf = std::numeric_limits<double>::infinity();
  TestValues<double> x{2.9,   -2.9, 0.5,  -0.5, 3e9, -3e9,        1e30,
                       -1e30, inf,  -inf, NAN,  300, 2147483647.5};
  TestValues<int32_t> y(13);
  TestValues<int64_t> wide(13);
  TestValues<uint8_t> byte(13);
  TestValues<bool> flag(13);
  const View from = x.view(DType::f64, {13});
  copy({.x = from, .y = y.view(DType::i32, {13})});
  copy({.x = from, .y = wide.view(DType::i64, {13})});
  copy({.x = from, .y = byte.view(DType::u8, {13})});
  copy({.x = from, .y = flag.view(DType::boolean, {13})});
  const int32_t most = INT32_MAX, least = INT32_MIN;
  const int32_t expected[] = {2, -2, 0, 0, most, least, most, least, most, least, 0, 300, most};
  const uint8_t expected_byte[] = {2, 0, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255};
  for (size_t i = 0; i < 13; ++i) {
    EXPECT_EQ(y[i], expected[i]) << x[i];
    EXPECT_EQ(byte[i], expected_byte[i]) << x[i];
    EXPECT_EQ(flag[i], true);
  }
  EXPECT_EQ(wide[4], 3000000000);
  EXPECT_EQ(wide[6], INT64_MAX);
  EXPECT_EQ(wide[9], INT64_MIN);
  EXPECT_EQ(wide[10], 0);
}

TEST(Copy, BroadcastsAndTransposesLargeMatrices) {
  for (DType to : {DType::f32, DType::f16, DType::i64}) {
    Array x(DType::f32, {3, 130, 197}), y(to, {3, 130, 197}, Layout::transposed);
    x.random(5, -100, 100);
    copy({.x = x.view(), .y = y.view()});
    for (int64_t i = 0; i < x.numel(); ++i) {
      ASSERT_EQ(y[i], stored(to, x[i]));
    }
  }
  Array row(DType::f32, {1, 7}), table(DType::f32, {4, 5, 7});
  row.random(2);
  copy({.x = row.view(), .y = table.view()});
  for (int64_t i = 0; i < table.numel(); ++i) {
    ASSERT_EQ(table[i], row[i % 7]);
  }
  EXPECT_THROW(copy({.x = table.view(), .y = row.view()}), Error);
}

// Covers conversions and moves of few elements at any address, and transposes of partial tiles.
TEST(Copy, SizesAroundVectorsAndTiles) {
  for (DType from : {DType::f32, DType::bf16, DType::u8}) {
    for (DType to : {DType::f32, DType::f16, DType::u8}) {
      for (int64_t n : {1, 7, 15, 16, 17, 33, 255, 257, 1025}) {
        for (int64_t offset : {0, 1, 4, 9}) {
          Array x(from, {n}, Layout::contiguous, offset), y(to, {n});
          Array z(from, {n}, Layout::contiguous, offset);
          x.random(1, 0, 90);
          copy({.x = x.view(), .y = y.view()});
          copy({.x = x.view(), .y = z.view()});
          ASSERT_TRUE(z.gaps_untouched());
          for (int64_t i = 0; i < n; ++i) {
            ASSERT_EQ(y[i], stored(to, x[i])) << describe(from, {n}, Layout::contiguous);
            ASSERT_EQ(z[i], x[i]);
          }
        }
      }
    }
  }
  for (DType to : {DType::f64, DType::f32, DType::bf16, DType::u8}) {
    for (int64_t rows : {11, 12, 31, 32, 33, 65}) {
      for (int64_t columns : {12, 32, 33, 100}) {
        Array x(DType::f32, {2, rows, columns}, Layout::padded);
        Array same(to, {2, rows, columns}, Layout::padded);
        Array y(to, {2, rows, columns}, Layout::transposed);
        x.random(4, 0, 90);
        copy({.x = x.view(), .y = y.view()});
        copy({.x = y.view(), .y = same.view()});
        ASSERT_TRUE(same.gaps_untouched());
        for (int64_t i = 0; i < x.numel(); ++i) {
          ASSERT_EQ(y[i], stored(to, x[i])) << rows << " " << columns;
          ASSERT_EQ(same[i], y[i]) << rows << " " << columns;
        }
      }
    }
  }
}

TEST(Copy, BitsDoNotDependOnThreadCount) {
  Array x(DType::f32, {70, 40, 33}), first(DType::f16, {70, 40, 33}, Layout::transposed);
  x.random(3);
  set_threads(1);
  copy({.x = x.view(), .y = first.view()});
  for (int count : {2, 4}) {
    set_threads(count);
    Array again(DType::f16, {70, 40, 33}, Layout::transposed);
    copy({.x = x.view(), .y = again.view()});
    EXPECT_EQ(again.bytes(), first.bytes());
  }
  set_threads(0);
}

TEST(Fill, EveryDTypeAndLayout) {
  for (DType dtype : kAllDTypes) {
    for (const Dims& sizes : test_shapes()) {
      for (Layout layout : kOutputLayouts) {
        Array y(dtype, sizes, layout);
        fill({.y = y.view(), .value = 2.7});
        ASSERT_TRUE(y.gaps_untouched());
        for (int64_t i = 0; i < y.numel(); ++i) {
          ASSERT_EQ(y[i], stored(dtype, 2.7)) << describe(dtype, sizes, layout);
        }
      }
    }
  }
  Array large(DType::f32, {100003});
  fill({.y = large.view(), .value = -1.5});
  EXPECT_EQ(large[0], -1.5);
  EXPECT_EQ(large[100002], -1.5);
}

TEST(AddInto, EveryLayoutRoundsOnce) {
  for (DType dtype : floating_dtypes()) {
    for (const Dims& sizes : test_shapes()) {
      for (Layout layout : kInputLayouts) {
        for (Layout y_layout : kOutputLayouts) {
          Array x(dtype, sizes, layout), y(dtype, sizes, y_layout), before(dtype, sizes);
          x.random(1);
          y.random(2);
          before.random(2);
          add_into({.x = x.view(), .y = y.view()});
          ASSERT_TRUE(y.gaps_untouched());
          for (int64_t i = 0; i < y.numel(); ++i) {
            ASSERT_EQ(y[i], stored(dtype, x[i] + before[i])) << describe(dtype, sizes, layout);
          }
        }
      }
    }
  }
  Array x(DType::f32, {3}), y(DType::f64, {3}), z(DType::f32, {4});
  EXPECT_THROW(add_into({.x = x.view(), .y = y.view()}), Error);
  EXPECT_THROW(add_into({.x = x.view(), .y = z.view()}), Error);
}

TEST(NarrowerIsas, CopyPasses) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::copy_test
