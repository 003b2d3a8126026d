// Tests bf16 products on processors that multiply pairs of k (kernels/gemm/gemm_pairs_internal.h),
// and without pairs: every parity of k and of strides, values that pairs must not mix, and the
// mode.
#include <binade/kernels/base/math_mode.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>
#include <tests/kernels/gemm/gemm_case.h>

namespace binade::kernels::gemm_pairs_test {
namespace {

class GemmPairs : public testing::Test {
 protected:
  MathModeGuard fast_{MathMode::fast};  // whatever BINADE_MODE says
};

TEST_F(GemmPairs, ExactOnIntegersForEveryParityAndLayout) {
  const std::vector<int> straight = {0, 1}, transposed = {1, 0};
  for (int layout = 0; layout < 8; ++layout) {
    const auto order = [&](int bit) { return layout & bit ? transposed : straight; };
    for (const int64_t k : {1, 2, 3, 32, 33, 64, 95, 768, 770, 1601}) {
      for (const int64_t gap : {0, 1, 2}) {
        GemmCase c{19, 37, k, DType::bf16, true, true, false, true};
        c.a = order(1), c.b = order(2), c.y = order(4), c.gap = gap;
        run(c);
      }
    }
  }
}

TEST_F(GemmPairs, WithinTheBoundOnRandomNumbers) {
  for (const int64_t m : {1, 5, 64, 270}) {
    for (const int64_t n : {1, 17, 130}) {
      for (const int64_t k : {1, 64, 511, 900}) {
        for (int flags = 0; flags < 4; ++flags) {
          GemmCase c{m, n, k, DType::bf16, false, (flags & 1) != 0, (flags & 2) != 0};
          c.b = flags & 1 ? std::vector<int>{1, 0} : std::vector<int>{0, 1};
          c.accumulate = flags == 2;
          c.gelu = flags == 1;
          run(c);
        }
      }
    }
  }
}

// AMX tiles have 16 or 32 rows and columns and 16 pairs of k: covers sizes near those, with every
// epilogue of a tile, and a stored by rows and with steps.
TEST_F(GemmPairs, SizesAboutTilesAndWhatIsDoneWithSums) {
  int flags = 0;
  for (const int64_t m : {1, 2, 15, 16, 17, 31, 32, 33, 48, 63, 65, 253, 285}) {
    for (const int64_t n : {1, 15, 16, 17, 31, 32, 33, 49}) {
      for (const int64_t k : {1, 2, 30, 31, 32, 33, 34, 63, 65, 96}) {
        GemmCase c{m, n, k, DType::bf16};
        ++flags;
        c.bias = flags & 1, c.relu = flags & 2, c.accumulate = flags & 4;
        c.a = flags & 8 ? std::vector<int>{1, 0} : std::vector<int>{0, 1};
        c.gap = flags / 16 % 3;
        run(c);
      }
    }
  }
}

// Covers sizes where k is split into blocks and ends near a block's end.
TEST_F(GemmPairs, LongSumsInParts) {
  for (const int64_t k : {767, 768, 769, 770, 1535, 1537, 1600}) {
    for (const int64_t n : {20, 140}) {
      GemmCase c{37, n, k, DType::bf16};
      run(c);
      c.integers = false, c.accumulate = true;
      run(c);
    }
  }
}

TEST_F(GemmPairs, BatchesAndSharedOperands) {
  for (const bool share : {false, true}) {
    GemmCase c{33, 40, 31, DType::bf16};
    c.batch = 3, c.share_b = share;
    run(c);
    c.k = 64, c.b = {1, 0}, c.share_a = share, c.share_b = false;
    run(c);
  }
}

// The operands are parts of a larger matrix of NaN: elements after an odd k, or beyond a panel,
// must not enter a sum.
TEST_F(GemmPairs, NeighboursOfAnOperandDoNotCount) {
  for (const int64_t m : {1, 3, 30}) {
    for (const int64_t n : {1, 20, 33}) {
      for (const int64_t k : {1, 7, 8, 33}) {
        for (int layout = 0; layout < 4; ++layout) {
          constexpr int64_t kSide = 40;
          TestValues<bfloat16> a(std::vector<bfloat16>(kSide * kSide, bfloat16(NAN))), b = a;
          TestValues<bfloat16> y(std::vector<bfloat16>(static_cast<size_t>(m * n)));
          const Dims a_strides = layout & 1 ? Dims{1, kSide} : Dims{kSide, 1};
          const Dims b_strides = layout & 2 ? Dims{1, kSide} : Dims{kSide, 1};
          for (int64_t p = 0; p < k; ++p) {
            for (int64_t i = 0; i < m; ++i) {
              a.set(static_cast<size_t>(i * a_strides[0] + p * a_strides[1]), bfloat16(1.0f));
            }
            for (int64_t j = 0; j < n; ++j) {
              b.set(static_cast<size_t>(p * b_strides[0] + j * b_strides[1]), bfloat16(1.0f));
            }
          }
          gemm({.a = a.view(DType::bf16, {m, k}, a_strides),
                .b = b.view(DType::bf16, {k, n}, b_strides),
                .y = y.view(DType::bf16, {m, n}, {n, 1})});
          for (size_t i = 0; i < static_cast<size_t>(m * n); ++i) {
            ASSERT_EQ(static_cast<float>(y[i]), static_cast<float>(k)) << m << " " << n << " " << k;
          }
        }
      }
    }
  }
}

TEST_F(GemmPairs, NanAndInfinityStayInTheirRowsAndColumns) {
  const int64_t m = 20, n = 35, k = 10;
  StridedArray a(DType::bf16, {m, k}), b(DType::bf16, {k, n}), y(DType::bf16, {m, n});
  a.randomize(1, true);
  b.randomize(2, true);
  for (int64_t j = 0; j < n; ++j) {
    b.set({3, j}, j == 5 ? 0 : 1);
    b.set({4, j}, 1);
  }
  a.set({2, 3}, INFINITY);  // column 5 multiplies it by 0, the others by 1
  a.set({7, 4}, NAN);
  a.set({9, 3}, INFINITY);
  a.set({9, 4}, -INFINITY);
  gemm({.a = a.view(), .b = b.view(), .y = y.view()});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const double got = y.get({i, j});
      if (i == 7 || i == 9 || (i == 2 && j == 5)) {
        EXPECT_TRUE(std::isnan(got)) << i << ", " << j;
      } else if (i == 2) {
        EXPECT_EQ(got, INFINITY) << j;
      } else {
        EXPECT_TRUE(std::isfinite(got)) << i << ", " << j;
      }
    }
  }
}

// Results are rounded to nearest even, overflow to infinity, and keep subnormals: only products and
// their partial sums are flushed.
TEST_F(GemmPairs, RoundsOnceToNearest) {
  struct Row {
    double x, bias, want;
  };
  const Row rows[] = {
      {1, 0x1p-8, 1},          {1 + 0x1p-7, 0x1p-8, 1 + 0x1p-6}, {0x1.fep127, 0x1p120, INFINITY},
      {0, 0x1p-130, 0x1p-130}, {1, 0x1.8p-8, 1 + 0x1p-7},        {-1, -0x1.8p-8, -1 - 0x1p-7}};
  for (const Row& row : rows) {
    StridedArray a(DType::bf16, {3, 2}), b(DType::bf16, {2, 18}), y(DType::bf16, {3, 18}),
        bias(DType::bf16, {18});
    a.each([&](const std::vector<int64_t>& at) { a.set(at, at[1] ? 0 : row.x); });
    b.each([&](const std::vector<int64_t>& at) { b.set(at, 1); });
    bias.each([&](const std::vector<int64_t>& at) { bias.set(at, row.bias); });
    gemm({.a = a.view(), .b = b.view(), .y = y.view(), .epilogue = {.bias = bias.view()}});
    y.each([&](const std::vector<int64_t>& at) { ASSERT_EQ(y.get(at), row.want) << row.x; });
  }
}

TEST_F(GemmPairs, PreciseKeepsSubnormalNumbers) {
  StridedArray a(DType::bf16, {2, 2}), b(DType::bf16, {2, 2}), y(DType::bf16, {2, 2});
  a.each([&](const std::vector<int64_t>& at) { a.set(at, 0x1p-130); });
  b.each([&](const std::vector<int64_t>& at) { b.set(at, 0x1p100); });
  const bool pairs = isa() >= Isa::avx512_bf16;
  EXPECT_EQ(pairs_run(DType::bf16), pairs);
  gemm({.a = a.view(), .b = b.view(), .y = y.view()});
  EXPECT_EQ(y.get({0, 0}), pairs ? 0 : 0x1p-29);
  const MathModeGuard precise(MathMode::precise);
  EXPECT_FALSE(pairs_run(DType::bf16));
  gemm({.a = a.view(), .b = b.view(), .y = y.view()});
  EXPECT_EQ(y.get({0, 0}), 0x1p-29);
}

TEST_F(GemmPairs, SameBitsAtAnyThreadCount) {
  struct Size {
    int64_t m, n, k;
  };
  for (const Size s : {Size{257, 130, 501}, Size{64, 512, 784}, Size{512, 784, 64}}) {
    for (const std::vector<int>& order : {std::vector<int>{0, 1}, std::vector<int>{1, 0}}) {
      std::vector<std::byte> first;
      for (const int count : {1, 2, 4}) {
        set_threads(count);
        StridedArray a(DType::bf16, {s.m, s.k}, order), b(DType::bf16, {s.k, s.n}, {1, 0}),
            y(DType::bf16, {s.m, s.n});
        a.randomize(1, false);
        b.randomize(2, false);
        gemm({.a = a.view(), .b = b.view(), .y = y.view()});
        first = first.empty() ? y.bytes() : first;
        EXPECT_EQ(first, y.bytes()) << count << " threads";
      }
      set_threads(0);
    }
  }
}

TEST_F(GemmPairs, PassesOnNarrowerIsas) {
  EXPECT_TRUE(passes_on_narrower_isas({"avx512_bf16", "avx512", "avx2", "baseline"}));
}

}  // namespace
}  // namespace binade::kernels::gemm_pairs_test
