// Tests that StridedLoop merges dimensions and covers every element exactly once with its tiles,
// and that StridedIndex finds elements by number with fast and with 64-bit divisions.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <gtest/gtest.h>
#include <binade/kernels/cuda/strided.cuh>

#include <atomic>
#include <random>
#include <vector>

#include "tests/kernels/support/layouts.h"

namespace binade::kernels::strided_test {
namespace {

TEST(StridedLoop, DenseOperandsOfAnyOneLayoutBecomeOneDimension) {
  for (Layout layout : {Layout::contiguous, Layout::transposed, Layout::channels_last}) {
    Array x(DType::f32, {2, 3, 4, 5}, layout), y(DType::f16, {2, 3, 4, 5}, layout);
    const View xv = x.view(), yv = y.view();
    const StridedLoop loop("test", {&yv, &xv});
    EXPECT_EQ(loop.dims(), 1);
    EXPECT_EQ(loop.size(0), 120);
    EXPECT_EQ(loop.stride(0, 0), 2);
    EXPECT_EQ(loop.stride(1, 0), 4);
  }
}

TEST(StridedLoop, BiasKeepsTwoDimensions) {
  Array y(DType::f32, {2, 3, 4, 5}), bias(DType::f32, {4, 5});
  const View yv = y.view(), bv = bias.view();
  const StridedLoop loop("test", {&yv, &yv, &bv});
  EXPECT_EQ(loop.dims(), 2);
  EXPECT_EQ(loop.size(0), 20);
  EXPECT_EQ(loop.size(1), 6);
  EXPECT_EQ(loop.stride(2, 1), 0);
}

TEST(StridedLoop, TilesCoverEveryElementOnce) {
  for (int count : {1, 3}) {
    set_threads(count);
    for (const Dims& sizes : {Dims{}, Dims{0, 4}, Dims{3, 5, 7}, Dims{3, 50001}, Dims{40000, 3}}) {
      for (Layout layout : kOutputLayouts) {
        Array y(DType::i64, sizes, layout), x(DType::i64, sizes);
        for (int64_t i = 0; i < y.numel(); ++i) {
          y.set(i, 0);
          x.set(i, static_cast<double>(i));
        }
        std::atomic<int64_t> total = 0;
        const View yv = y.view(), xv = x.view();
        StridedLoop("test", {&yv, &xv}).run([&](const StridedTile& tile) {
          for (int64_t r = 0; r < tile.rows; ++r) {
            for (int64_t i = 0; i < tile.n; ++i) {
              const auto at = [&](int k) {
                return reinterpret_cast<int64_t*>(tile.data[k] + r * tile.outer[k] +
                                                  i * tile.inner[k]);
              };
              *at(0) += *at(1) + 1;
            }
          }
          total += tile.rows * tile.n;
        });
        EXPECT_EQ(total, y.numel());
        for (int64_t i = 0; i < y.numel(); ++i) {
          ASSERT_EQ(y[i], static_cast<double>(i + 1)) << describe(DType::i64, sizes, layout);
        }
      }
    }
  }
  set_threads(0);
}

TEST(FastDivider, IsDivision) {
  std::mt19937 generator(1);
  std::vector<uint32_t> numbers = {0, 1, 2, 3, 7, 255, 256, 257, 65535, 65536, 0x7fffffff};
  for (int i = 0; i < 300; ++i) {
    numbers.push_back(generator() >> (1 + i % 31));
  }
  for (uint32_t divisor : numbers) {
    if (divisor == 0) {
      continue;
    }
    const FastDivider divider(divisor);
    for (uint32_t n : numbers) {
      for (uint32_t near : {n, n / divisor * divisor, n / divisor * divisor + divisor - 1}) {
        if (near <= 0x7fffffff) {
          ASSERT_EQ(divider.quotient(near), near / divisor) << near << " / " << divisor;
        }
      }
    }
  }
}

TEST(StridedIndex, LocatesEveryElementOnce) {
  for (const Dims& sizes : test_shapes()) {
    for (Layout layout : kOutputLayouts) {
      for (bool wide : {false, true}) {
        Array y(DType::i64, sizes, layout), x(DType::i64, sizes, Layout::transposed);
        for (int64_t i = 0; i < y.numel(); ++i) {
          x.set(i, static_cast<double>(i));
          y.set(i, 0);
        }
        const View yv = y.view(), xv = x.view();
        StridedIndex<2> sorted(StridedLoop("test", {&yv, &xv}));
        StridedIndex<2> row_major = StridedIndex<2>::row_major({&yv, &xv});
        sorted.wide = row_major.wide = wide;
        ASSERT_EQ(row_major.numel, y.numel());
        for (int64_t i = 0; i < y.numel(); ++i) {
          std::byte* at[2];
          sorted.locate(i, at);
          *reinterpret_cast<int64_t*>(at[0]) += *reinterpret_cast<int64_t*>(at[1]) + 1;
          row_major.locate(i, at);
          ASSERT_EQ(*reinterpret_cast<int64_t*>(at[1]), i);
        }
        for (int64_t i = 0; i < y.numel(); ++i) {
          ASSERT_EQ(y[i], static_cast<double>(i + 1)) << describe(DType::i64, sizes, layout);
        }
      }
    }
  }
}

TEST(StridedLoop, SizesThatDoNotBroadcastAreAnError) {
  Array y(DType::f32, {2, 3}), x(DType::f32, {2, 2}), z(DType::f32, {1, 2, 3});
  const View yv = y.view(), xv = x.view(), zv = z.view();
  EXPECT_THROW(StridedLoop("test", {&yv, &xv}), Error);
  EXPECT_THROW(StridedLoop("test", {&yv, &zv}), Error);
}

}  // namespace
}  // namespace binade::kernels::strided_test
