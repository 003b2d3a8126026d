// Tests bf16 convolutions on processors that multiply pairs of channels, or of images for the
// gradient of the weight (kernels/gemm/gemm_pairs_internal.h).
#include <tests/kernels/conv/conv2d_case.h>

namespace binade::kernels::conv2d_pairs_test {
namespace {

// Covers channels in whole pairs in one direction or both, and pixels that start inside a pair.
TEST(Conv2dPairs, EveryParityOfChannelsAndPixels) {
  if (on_device()) {
    GTEST_SKIP() << "pairs are the CPU's";
  }
  for (const bool integers : {true, false}) {
    for (const auto& order : {kChannelsLast, kPlain}) {
      for (const int64_t gap : {0, 1, 2}) {
        const auto run_bf16 = [&](ConvCase k) {
          k.dtype = DType::bf16, k.integers = integers, k.bias = true, k.relu = gap == 1;
          k.x_order = k.y_order = order, k.gap = gap;
          run(k);
        };
        run_bf16({2, 2, 5, 6, 4, 3, 3, geometry(1, 1)});
        run_bf16({2, 16, 9, 8, 18, 3, 3, geometry(2, 1)});
        run_bf16({2, 16, 9, 8, 35, 1, 1, geometry(2, 0)});
        run_bf16({1, 34, 11, 10, 33, 1, 1});
        run_bf16({17, 6, 4, 4, 36, 3, 3, geometry(1, 1)});
        run_bf16({2, 6, 9, 9, 4, 2, 2, geometry(5, 4)});
        run_bf16({1, 8, 9, 7, 12, 3, 3, geometry(1, 2, 2, 2)});
        run_bf16({1, 6, 9, 7, 8, 3, 3, geometry(2, 1, 1, 2)});
        run_bf16({1, 3, 13, 12, 10, 7, 7, geometry(2, 3)});
      }
    }
  }
}

// Covers runs of about 16 pairs of channels, which AMX multiplies at once, and tiles of about 16
// and 32 pixels.
TEST(Conv2dPairs, RunsAndRowsAboutTiles) {
  if (on_device()) {
    GTEST_SKIP() << "pairs are the CPU's";
  }
  for (const bool integers : {true, false}) {
    for (const int64_t channels : {30, 32, 34, 64, 66}) {
      for (const int64_t width : {15, 16, 17, 31, 33}) {
        ConvCase c{2, channels, 2, width, channels, 1, 1};
        c.dtype = DType::bf16, c.integers = integers, c.bias = true, c.relu = width == 16;
        run(c);
        c.r = c.s = 3, c.geometry = geometry(2, 1);
        run(c);
      }
    }
  }
}

TEST(Conv2dPairs, SameBitsAtAnyThreadCount) {
  const MathModeGuard fast(MathMode::fast);
  std::vector<std::vector<std::byte>> first;
  for (const int count : {1, 2, 4}) {
    set_threads(count);
    StridedArray x(DType::bf16, {9, 24, 14, 14}, kChannelsLast), dx = x;
    StridedArray w(DType::bf16, {70, 24, 3, 3}, kChannelsLast), dw = w;
    StridedArray y(DType::bf16, {9, 70, 7, 7}, kChannelsLast), dy = y;
    x.randomize(1, false);
    w.randomize(2, false);
    dy.randomize(3, false);
    const Conv2dGeometry g = geometry(2, 1);
    conv2d_forward({.x = x.view(), .w = w.view(), .y = y.view(), .geometry = g});
    conv2d_backward_data({.dy = dy.view(), .w = w.view(), .dx = dx.view(), .geometry = g});
    conv2d_backward_weight({.x = x.view(), .dy = dy.view(), .dw = dw.view(), .geometry = g});
    const std::vector<std::vector<std::byte>> now = {y.bytes(), dx.bytes(), dw.bytes()};
    first = first.empty() ? now : first;
    EXPECT_EQ(first, now) << count << " threads";
  }
  set_threads(0);
}

TEST(Conv2dPairs, PassesOnNarrowerIsas) {
  EXPECT_TRUE(passes_on_narrower_isas({"avx512_bf16", "avx512", "avx2", "baseline"}));
}

}  // namespace
}  // namespace binade::kernels::conv2d_pairs_test
