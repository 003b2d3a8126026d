// Tests the numerics of the device: those of a GPU in the preset gpu-numerics, else those of the
// host. Other tests must pass with both; this one tells which is in use.
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/gemm/gemm.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/device_bytes.h>

#include <bit>
#include <cmath>

namespace binade::kernels::numerics_device_test {
namespace {

#ifdef BINADE_EXPECT_DEVICE_NUMERICS
constexpr bool kAsGpu = true;
#else
constexpr bool kAsGpu = false;
#endif

TEST(DeviceNumerics, NanOfSixteenBitsIsOneValueOnAGpu) {
  if (test_device().kind != Device::kEmulated) {
    GTEST_SKIP() << "about the emulated device";
  }
  TestValues<float> x{std::bit_cast<float>(0xffc01000u), INFINITY, -1.5f};
  for (const DType dtype : {DType::f16, DType::bf16}) {
    TestValues<uint16_t> y(3);
    TestValues<float> back(3);
    copy({.x = x.view(DType::f32, {3}), .y = y.view(dtype, {3})});
    copy({.x = y.view(dtype, {3}), .y = back.view(DType::f32, {3})});
    EXPECT_EQ(y[0] == 0x7fff, kAsGpu) << y[0];
    EXPECT_TRUE(std::isnan(back[0]));
    EXPECT_EQ(back[1], INFINITY);
    EXPECT_EQ(back[2], -1.5f);
  }
}

// Computes -(1 + 2u) + (1 + u)^2 with u = 2^-12: u^2 with a fused multiply-add, else 0.
TEST(DeviceNumerics, ProductsAndSumsAreContractedOnAGpu) {
  if (test_device().kind != Device::kEmulated) {
    GTEST_SKIP() << "about the emulated device";
  }
  TestValues<float> a{-1 - 0x1p-11f, 1 + 0x1p-12f}, b{1, 1 + 0x1p-12f}, y(1);
  gemm({.a = a.view(DType::f32, {1, 2}),
        .b = b.view(DType::f32, {2, 1}),
        .y = y.view(DType::f32, {1, 1})});
  EXPECT_EQ(y[0], kAsGpu ? 0x1p-24f : 0.0f);
}

}  // namespace
}  // namespace binade::kernels::numerics_device_test
