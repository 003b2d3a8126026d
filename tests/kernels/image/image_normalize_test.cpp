// Compares image_normalize with double: every channel count, dtype and layout, sizes around
// vectors, misaligned base addresses, and errors.
#include <binade/kernels/image/image_normalize.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/support/layouts.h"

namespace binade::kernels::image_normalize_test {
namespace {

constexpr std::array<float, 4> kScale = {0.017f, 0.0175f, 0.0174f, 0.5f};
constexpr std::array<float, 4> kShift = {-2.1f, -2.0f, -1.8f, 3.0f};

void check_normalize(DType dtype, const Dims& x_sizes, Layout layout, size_t x_offset = 0) {
  const int64_t n = element_count(x_sizes), channels = x_sizes[3];
  std::vector<uint8_t> memory(static_cast<size_t>(n) + x_offset);
  for (size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<uint8_t>(i * 37 + i / 251);
  }
  const uint8_t* x = memory.data() + x_offset;
  TestValues<uint8_t> device_memory(memory);
  const View xv = device_memory.view(DType::u8, x_sizes, x_offset);
  Array y(dtype, {x_sizes[0], channels, x_sizes[1], x_sizes[2]}, layout);
  image_normalize({xv, y.view(), kScale, kShift});
  ASSERT_TRUE(y.gaps_untouched());
  const int64_t pixels = x_sizes[1] * x_sizes[2];
  for (int64_t i = 0; i < n; ++i) {  // i in the order of y's indices
    const int64_t image = i / (channels * pixels), c = i / pixels % channels, pixel = i % pixels;
    const auto at = static_cast<size_t>(c);
    const double value = static_cast<double>(x[(image * pixels + pixel) * channels + c]);
    const double expected =
        value * static_cast<double>(kScale[at]) + static_cast<double>(kShift[at]);
    ASSERT_NEAR(y[i], expected, (std::fabs(expected) + 4) * epsilon(dtype))
        << describe(dtype, x_sizes, layout) << " offset " << x_offset << " element " << i;
  }
}

TEST(ImageNormalize, EveryChannelCountDTypeAndLayout) {
  for (DType dtype : floating_dtypes()) {
    for (int64_t channels = 1; channels <= 4; ++channels) {
      for (Layout layout : kOutputLayouts) {
        check_normalize(dtype, {2, 9, 11, channels}, layout);
        check_normalize(dtype, {1, 1, 1, channels}, layout);
        check_normalize(dtype, {3, 1, 5, channels}, layout);
      }
    }
  }
}

TEST(ImageNormalize, SizesAroundVectorsAndMisalignedMemory) {
  for (DType dtype : {DType::f32, DType::f16}) {
    for (int64_t width : {1, 2, 3, 5, 8, 31, 32, 33, 85, 86, 255, 257, 1025}) {
      for (size_t offset : {0, 1, 2, 3, 8, 15}) {
        check_normalize(dtype, {1, 1, width, 3}, Layout::channels_last, offset);
        check_normalize(dtype, {1, 1, width, 3}, Layout::contiguous, offset);
        check_normalize(dtype, {1, 1, width, 1}, Layout::offset, offset);
      }
    }
  }
}

TEST(ImageNormalize, EmptyAndBadArguments) {
  check_normalize(DType::f32, {0, 4, 4, 3}, Layout::contiguous);
  Array x(DType::u8, {2, 4, 4, 3}), f(DType::f32, {2, 4, 4, 3}), five(DType::u8, {2, 4, 4, 5});
  Array strided(DType::u8, {2, 4, 4, 3}, Layout::step2);
  Array y(DType::f32, {2, 3, 4, 4}), whole(DType::i32, {2, 3, 4, 4}), y5(DType::f32, {2, 5, 4, 4});
  const auto run = [](Array& from, Array& to) {
    image_normalize({from.view(), to.view(), kScale, kShift});
  };
  EXPECT_THROW(run(f, y), Error);
  EXPECT_THROW(run(strided, y), Error);
  EXPECT_THROW(run(x, whole), Error);
  EXPECT_THROW(run(x, f), Error);
  EXPECT_THROW(run(five, y5), Error);
}

}  // namespace
}  // namespace binade::kernels::image_normalize_test
