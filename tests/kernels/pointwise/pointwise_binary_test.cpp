// Tests pointwise kernels at the sizes and addresses where vectors begin and end, and with
// broadcast rows.
#include <binade/kernels/pointwise/pointwise.h>
#include <gtest/gtest.h>

#include "tests/kernels/support/layouts.h"

namespace binade::kernels::pointwise_binary_test {
namespace {

// Covers counts around vectors, warps and blocks, and operands that are aligned, jointly aligned
// after a few elements, or never aligned.
TEST(Pointwise, SizesAroundVectorsAndMisalignedMemory) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    for (int64_t n : {1, 2, 7, 8, 9, 31, 33, 255, 257, 2049}) {
      for (int64_t x_offset : {0, 1, 3, 8}) {
        for (int64_t y_offset : {0, 1, 3}) {
          Array x(dtype, {n}, Layout::contiguous, x_offset), z(dtype, {n});
          Array y(dtype, {n}, Layout::contiguous, y_offset), same(DType::boolean, {n});
          x.random(1);
          z.random(2);
          unary_forward({.op = Unary::neg, .x = x.view(), .y = y.view()});
          binary_forward({Binary::add, y.view(), z.view(), y.view()});
          compare_forward({Compare::lt, x.view(), z.view(), same.view()});
          ASSERT_TRUE(y.gaps_untouched());
          for (int64_t i = 0; i < n; ++i) {
            ASSERT_NEAR(y[i], z[i] - x[i], 4 * epsilon(dtype)) << to_string(dtype) << " " << n;
            ASSERT_EQ(same[i] != 0, x[i] < z[i]);
          }
        }
      }
    }
  }
}

// Covers rows with and without whole vectors, and operands repeated along or across rows.
TEST(Pointwise, BroadcastRows) {
  for (DType dtype : {DType::f32, DType::f16}) {
    for (int64_t columns : {8, 12, 33, 64}) {
      const Dims sizes = {5, 3, columns};
      Array x(dtype, sizes), y(dtype, sizes), bias(dtype, {columns}), channel(dtype, {3, 1});
      Array shifted(dtype, {columns}, Layout::contiguous, 1);
      x.random(1);
      bias.random(2);
      shifted.random(2);
      channel.random(3);
      const auto expect = [&](const Array& other, bool per_column) {
        for (int64_t i = 0; i < y.numel(); ++i) {
          const double b = other[per_column ? i % columns : i / columns % 3];
          ASSERT_NEAR(y[i], x[i] + b, 3 * epsilon(dtype)) << to_string(dtype) << " " << columns;
        }
      };
      for (Array* a : {&bias, &shifted}) {
        binary_forward({Binary::add, x.view(), a->view(), y.view()});
        expect(*a, true);
      }
      binary_forward({Binary::add, x.view(), channel.view(), y.view()});
      expect(channel, false);
    }
  }
}

}  // namespace
}  // namespace binade::kernels::pointwise_binary_test
