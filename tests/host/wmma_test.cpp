#include <binade/kernels/host/executor.h>
#include <binade/kernels/host/wmma.h>
#include <gtest/gtest.h>
#include <tests/host/wmma_kernels.h>

#include <limits>
#include <vector>

namespace binade::kernels::host {
namespace {

// Small whole numbers: every type holds them and every sum exactly, so the order does not matter.
float small_number(int i) { return static_cast<float>((i * 7 + i / 5) % 9 - 4); }

TEST(Wmma, Products) {
  const int shapes[][3] = {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}};
  for (const WmmaTypes types : {WmmaTypes::f16_f32, WmmaTypes::f16_f16, WmmaTypes::bf16_f32,
                                WmmaTypes::tf32_f32, WmmaTypes::s8_s32}) {
    for (const auto& shape : shapes) {
      const bool tf32 = types == WmmaTypes::tf32_f32;
      const int m = tf32 ? 16 : shape[0], n = tf32 ? 16 : shape[1], k = tf32 ? 8 : shape[2];
      std::vector<float> a(m * k), b(k * n), c(m * n), d(m * n);
      for (int i = 0; i < m * k; ++i) {
        a[i] = small_number(i);
      }
      for (int i = 0; i < k * n; ++i) {
        b[i] = small_number(3 * i + 1);
      }
      for (int i = 0; i < m * n; ++i) {
        c[i] = small_number(5 * i + 2);
      }
      for (int layouts = 0; layouts < 8; ++layouts) {
        const WmmaCase one{
            types, m, n, k, (layouts & 1) != 0, (layouts & 2) != 0, (layouts & 4) != 0};
        ASSERT_TRUE(run_wmma(one, a.data(), b.data(), c.data(), d.data()));
        for (int row = 0; row < m; ++row) {
          for (int col = 0; col < n; ++col) {
            float sum = c[row * n + col];
            for (int i = 0; i < k; ++i) {
              sum += a[row * k + i] * b[i * n + col];
            }
            ASSERT_EQ(d[row * n + col], sum)
                << static_cast<int>(types) << " " << m << " x " << n << ", layouts " << layouts;
          }
        }
      }
    }
  }
}

TEST(Wmma, ElementsOfAFragmentCanBeChanged) { EXPECT_EQ(run_fill_and_scale(3, 2.5f), 7.5f); }

// PTX ISA, wmma.mma: without .satfinite a sum of integers wraps.
TEST(Wmma, SumsOfIntegersWrapOrSaturate) {
  constexpr int kLargest = std::numeric_limits<int>::max(),
                kLeast = std::numeric_limits<int>::min();
  EXPECT_EQ(run_large_sum(kLargest - 31, 1, 2, false), kLeast);
  EXPECT_EQ(run_large_sum(kLargest - 31, 1, 2, true), kLargest);
  EXPECT_EQ(run_large_sum(kLeast + 31, 2, -1, false), kLargest);
  EXPECT_EQ(run_large_sum(kLeast + 31, 2, -1, true), kLeast);
  EXPECT_EQ(run_large_sum(kLargest - 32, 1, 2, true), kLargest);
}

TEST(Wmma, EachElementBelongsToOneLane) {
  for (const WmmaTile tile : {WmmaTile{WmmaUse::a, 16, 16}, WmmaTile{WmmaUse::b, 16, 8},
                              WmmaTile{WmmaUse::accumulator, 8, 32}}) {
    std::vector<int> owners(tile.rows * tile.cols);
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < tile.elements(); ++i) {
        const WmmaPosition at = wmma_position(tile, lane, i);
        ASSERT_LT(at.row, tile.rows);
        ASSERT_LT(at.col, tile.cols);
        ++owners[at.row * tile.cols + at.col];
      }
    }
    EXPECT_EQ(std::count(owners.begin(), owners.end(), 1), tile.rows * tile.cols);
  }
}

TEST(Wmma, NeedsAFullWarp) {
  try {
    run_half_of_a_warp();
    FAIL();
  } catch (const KernelError& error) {
    EXPECT_NE(std::string(error.what()).find("wmma_kernels.cu:"), std::string::npos)
        << error.what();
  }
}

// cvt.rna.tf32.f32 keeps 10 bits of the fraction; a tie goes away from zero.
TEST(Wmma, RoundsToTf32) {
  EXPECT_EQ(round_to_tf32(1.0f), 1.0f);
  EXPECT_EQ(round_to_tf32(1.0f + 0x1p-11f), 1.0f + 0x1p-10f);
  EXPECT_EQ(round_to_tf32(-1.0f - 0x1p-11f), -1.0f - 0x1p-10f);
  EXPECT_EQ(round_to_tf32(1.0f + 0x1p-12f), 1.0f);
  EXPECT_EQ(cut_to_tf32(1.0f + 0x1.8p-11f), 1.0f);
}

}  // namespace
}  // namespace binade::kernels::host
