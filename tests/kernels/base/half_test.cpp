// Tests half and bfloat16: every bit pattern, ties, subnormals, overflow, and conversion from
// double. If BINADE_LONG is set, conversions of every float are tested.
#include <binade/kernels/base/half.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace binade::half_test {
namespace {

// Computes the correctly rounded value by exact scaling and std::nearbyint (ties to even).
double rounded(double x, int digits, int least_exponent, double largest) {
  if (!std::isfinite(x) || x == 0) {
    return x;
  }
  const int exponent = std::max(std::ilogb(x), least_exponent);
  const double unit = std::ldexp(1.0, exponent - digits + 1);
  const double y = std::nearbyint(x / unit) * unit;
  return std::fabs(y) > largest ? std::copysign(INFINITY, x) : y;
}
double as_half(double x) { return rounded(x, 11, -14, 65504); }
double as_bfloat16(double x) { return rounded(x, 8, -126, 0x1.fep127); }

TEST(Half, EveryValueRoundTrips) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const half h = half::from_bits(static_cast<uint16_t>(bits));
    const float value = static_cast<float>(h);
    const bool nan = (bits & 0x7fff) > 0x7c00;
    ASSERT_EQ(std::isnan(value), nan) << bits;
    const uint32_t expected = nan ? bits | 0x200 : bits;  // quiet, same payload
    ASSERT_EQ(half(value).bits, expected);
    ASSERT_EQ(half(static_cast<double>(h)).bits, expected);
    if ((bits & 0x7fff) < 0x7c00) {
      const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
      const double exact =
          exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
      ASSERT_EQ(value, bits & 0x8000 ? -exact : exact);
    }
  }
}

TEST(Half, EveryBfloat16RoundTrips) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const bfloat16 b = bfloat16::from_bits(static_cast<uint16_t>(bits));
    const float value = static_cast<float>(b);
    const bool nan = (bits & 0x7fff) > 0x7f80;
    ASSERT_EQ(std::isnan(value), nan) << bits;
    ASSERT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
    ASSERT_EQ(bfloat16(value).bits, nan ? bits | 0x40 : bits);
  }
}

TEST(Half, MidpointsOfAllNeighboursRoundToEven) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const double low = static_cast<double>(half::from_bits(static_cast<uint16_t>(bits)));
    const double high = bits == 0x7bff
                            ? 65536.0
                            : static_cast<double>(half::from_bits(static_cast<uint16_t>(bits + 1)));
    const double middle = (low + high) / 2;  // exact in float
    const auto even = static_cast<uint16_t>(bits + (bits & 1));
    ASSERT_EQ(half(static_cast<float>(middle)).bits, even);
    ASSERT_EQ(half(middle).bits, even);
    ASSERT_EQ(half(-middle).bits, even | 0x8000);
    // The next double on either side rounds that way; a detour through float would lose it.
    ASSERT_EQ(half(std::nextafter(middle, 0.0)).bits, bits);
    ASSERT_EQ(half(std::nextafter(middle, 1e9)).bits, bits + 1);
    ASSERT_EQ(half(std::nextafterf(static_cast<float>(middle), 0.0f)).bits, bits);
    ASSERT_EQ(half(std::nextafterf(static_cast<float>(middle), 1e9f)).bits, bits + 1);
  }
}

TEST(Half, Bfloat16MidpointsRoundToEven) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const float middle = std::bit_cast<float>(bits << 16 | 0x8000u);
    const auto even = static_cast<uint16_t>(bits + (bits & 1));
    ASSERT_EQ(bfloat16(middle).bits, even);
    ASSERT_EQ(bfloat16(static_cast<double>(middle)).bits, even);
    ASSERT_EQ(bfloat16(std::nextafter(static_cast<double>(middle), 0.0)).bits, bits);
    ASSERT_EQ(bfloat16(std::nextafter(static_cast<double>(middle), 1e39)).bits, bits + 1);
  }
}

TEST(Half, OverflowStartsAt65520) {
  EXPECT_EQ(half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(half(std::nextafterf(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(half(-65520.0).bits, 0xfc00);
  EXPECT_EQ(half(std::nextafter(65520.0, 0.0)).bits, 0x7bff);
  EXPECT_EQ(half(1e300).bits, 0x7c00);
  EXPECT_EQ(half(std::numeric_limits<float>::infinity()).bits, 0x7c00);
  EXPECT_EQ(bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(bfloat16(1e300).bits, 0x7f80);
}

TEST(Half, SmallestValues) {
  EXPECT_EQ(half(0x1p-24f).bits, 1);
  EXPECT_EQ(half(0x1p-25f).bits, 0);  // a tie, to even
  EXPECT_EQ(half(std::nextafterf(0x1p-25f, 1.0f)).bits, 1);
  EXPECT_EQ(half(-0x1p-26f).bits, 0x8000);
  EXPECT_EQ(half(1e-300).bits, 0);
  EXPECT_EQ(half(-1e-300).bits, 0x8000);
  EXPECT_EQ(bfloat16(1e-300).bits, 0);
  EXPECT_EQ(half(-0.0f).bits, 0x8000);
}

// The step between the floats to try.
uint64_t stride(uint64_t usual) { return std::getenv("BINADE_LONG") ? 1 : usual; }

// Rounds the bits of a float to 16, ties to even.
TEST(Half, Bfloat16AgreesWithIntegerArithmetic) {
  uint64_t differences = 0;
  const uint64_t distance = stride(20011);
  for (uint64_t word = 0; word < (uint64_t(1) << 32); word += distance) {
    const auto bits = static_cast<uint32_t>(word);
    const auto x = std::bit_cast<float>(bits);
    const uint16_t got = bfloat16(x).bits;
    if (std::isnan(x)) {
      differences += !std::isnan(static_cast<float>(bfloat16(x)));
    } else {
      differences += got != static_cast<uint16_t>((word + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
  }
  EXPECT_EQ(differences, 0u);
}

TEST(Half, AgreesWithArithmeticOnAStrideOfFloat) {
  for (uint64_t step = 0; step < (uint64_t(1) << 32); step += 39989) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(step));
    if (std::isnan(x)) {
      continue;
    }
    ASSERT_EQ(static_cast<double>(half(x)), as_half(x)) << x;
    ASSERT_EQ(static_cast<double>(bfloat16(x)), as_bfloat16(x)) << x;
    const double wide = x * (1 + 0x1p-30);  // between floats
    ASSERT_EQ(static_cast<double>(half(wide)), as_half(wide)) << x;
    ASSERT_EQ(static_cast<double>(bfloat16(wide)), as_bfloat16(wide)) << x;
  }
}

#if defined(__x86_64__)
[[gnu::target("f16c,avx")]] int64_t differences_from_f16c() {
  int64_t differences = 0;
  const uint64_t distance = stride(20011);
  for (uint64_t step = 0; step < (uint64_t(1) << 32); step += distance) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(step));
    const __m128i bits = _mm_cvtps_ph(_mm_set1_ps(x), _MM_FROUND_TO_NEAREST_INT);
    differences += static_cast<uint16_t>(_mm_extract_epi16(bits, 0)) != half(x).bits;
  }
  for (int bits = 0; bits < 65536; ++bits) {
    const __m128 value = _mm_cvtph_ps(_mm_set1_epi16(static_cast<int16_t>(bits)));
    const auto ours = static_cast<float>(half::from_bits(static_cast<uint16_t>(bits)));
    differences += static_cast<uint32_t>(_mm_extract_ps(value, 0)) != std::bit_cast<uint32_t>(ours);
  }
  return differences;
}

TEST(Half, AgreesWithTheProcessor) {
  if (!__builtin_cpu_supports("f16c")) {
    GTEST_SKIP() << "this processor has no F16C";
  }
  EXPECT_EQ(differences_from_f16c(), 0);
}
#endif

}  // namespace
}  // namespace binade::half_test
