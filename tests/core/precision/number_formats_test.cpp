// Compares number formats with ml_dtypes and gfloat of PyPI (format_digests.h) and with their own
// tables of codes. Also tests parsing, printing and wrong use.
#include <binade/core/precision/format_scheme.h>
#include <binade/core/precision/number_formats.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/half.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

#include "format_digests.h"

#include <tests/support/error_of.h>

namespace binade::number_formats_test {
namespace {

using Numbers = std::vector<float>;

// The inputs described in tests/parity/format_digests.py.
Numbers digest_inputs(const NumberFormat& format) {
  Numbers all;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    all.push_back(static_cast<float>(half::from_bits(static_cast<uint16_t>(bits))));
  }
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    all.push_back(std::bit_cast<float>(bits << 16));
  }
  Numbers near;
  const uint64_t top = format.encode(format.max());
  for (uint64_t code = 0; code < top; code += format.name == "tf32" ? 4099 : 1) {
    const auto low = static_cast<float>(format.decode(code));
    const auto middle = static_cast<float>((format.decode(code) + format.decode(code + 1)) / 2);
    near.insert(near.end(),
                {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)});
  }
  all.insert(all.end(), near.begin(), near.end());
  for (const float x : near) {
    all.push_back(-x);
  }
  if (format.name == "e8m0") {  // ml_dtypes does not give the nearest value here
    std::erase_if(all, [](float x) { return x > 0x1p-127f && x < 0x1.8p-127f; });
  }
  if (format.nan == NanCodes::none) {
    std::erase_if(all, [](float x) { return std::isnan(x); });
  }
  return all;
}

uint64_t digest_of(const Numbers& inputs, const std::function<double(float, uint32_t)>& round) {
  uint64_t hash = 0xcbf29ce484222325u;
  uint32_t i = 0;
  for (const float x : inputs) {
    const auto y = static_cast<float>(round(x, i++ * 2654435761u));
    const uint32_t bits = std::isnan(y) ? 0x7fc00000u : std::bit_cast<uint32_t>(y);
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ (bits >> shift & 0xffu)) * 0x100000001b3u;
    }
  }
  return hash;
}

class AgainstLibraries : public testing::TestWithParam<FormatDigests> {};

TEST_P(AgainstLibraries, NoResultDiffers) {
  const FormatDigests& wanted = GetParam();
  const NumberFormat format = number_format(wanted.format);
  const kernels::FormatGrid own = format.grid(), clipped = format.with(Overflow::saturate).grid();
  Numbers inputs = digest_inputs(format);
  ASSERT_EQ(static_cast<int64_t>(inputs.size()), wanted.inputs);
  // The libraries saturate infinities as well where there is no code for them.
  const auto with = [](const kernels::FormatGrid& grid, Rounding rounding) {
    return [&grid, rounding](float x, uint32_t bits) {
      const bool hidden = std::isinf(x) && (x > 0 || grid.is_signed) && grid.beyond == grid.max;
      return hidden ? std::copysign(grid.max, x) : kernels::round_to_grid(x, grid, rounding, bits);
    };
  };
  EXPECT_EQ(digest_of(inputs, with(own, Rounding::nearest_even)), wanted.nearest);
  EXPECT_EQ(digest_of(inputs, with(clipped, Rounding::nearest_even)), wanted.saturated);
  if (!format.has_sign) {
    std::erase_if(inputs, [](float x) { return !(x >= 0x1p-127f); });
  }
  EXPECT_EQ(digest_of(inputs, with(own, Rounding::toward_zero)), wanted.toward_zero);
  EXPECT_EQ(digest_of(inputs, with(own, Rounding::stochastic)), wanted.stochastic);
}

INSTANTIATE_TEST_SUITE_P(Formats, AgainstLibraries, testing::ValuesIn(kFormatDigests),
                         [](const auto& info) { return std::string(info.param.format); });

// Every code of every small format decodes to a value that encodes to the same code.
TEST(NumberFormats, CodesAndValuesAreOneToOne) {
  for (const char* name :
       {"e4m3", "e4m3fn", "e4m3fnuz", "e4m3b11fnuz", "e5m2", "e5m2fnuz", "e3m4", "e3m2", "e2m3",
        "e2m1", "e8m0", "f16", "bf16", "e4m3fn:subnormals=off", "e5m0:nan=top", "e3m3:nan=none",
        "e4m2:bias=2,infinities=off", "e1m6:nan=top", "e2m5:infinities=on,nan=negative-zero"}) {
    const NumberFormat format = number_format(name);
    for (uint64_t code = 0; code < format.codes(); ++code) {
      const double value = format.decode(code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(format.decode(format.encode(value)))) << name << " " << code;
        continue;
      }
      const double back = format.decode(format.encode(value));
      EXPECT_EQ(std::bit_cast<uint64_t>(back), std::bit_cast<uint64_t>(value)) << name << code;
      const bool zero_field = value == 0 && !format.subnormals;
      EXPECT_TRUE(format.encode(value) == code || zero_field) << name << " " << code;
    }
  }
}

// Formats that the libraries do not have are compared with a search of the table of values.
TEST(NumberFormats, NearestOfOtherFormatsIsTheNearestValue) {
  for (const char* name : {"e4m3fn:subnormals=off", "e5m0:nan=top", "e3m3:nan=none",
                           "e4m2:bias=2,infinities=off,overflow=saturate"}) {
    const NumberFormat format = number_format(name);
    const uint64_t top = format.encode(format.max());
    std::vector<std::pair<double, uint64_t>> table;
    for (uint64_t code = 0; code <= top; ++code) {
      const double value = format.decode(code);
      if (table.empty() || value != table.back().first) {
        table.emplace_back(value, code);
      }
    }
    for (size_t i = 0; i + 1 < table.size(); ++i) {
      const double low = table[i].first, high = table[i + 1].first, middle = (low + high) / 2;
      const bool first_gap = low == 0 && !format.subnormals;
      const bool low_is_even = first_gap || table[i].second % 2 == 0;
      EXPECT_EQ(format.round(middle), low_is_even ? low : high) << name << " " << middle;
      EXPECT_EQ(format.round(-std::nextafter(middle, 0)), -low) << name << " " << middle;
      EXPECT_EQ(format.round(std::nextafter(middle, 1e9)), high) << name << " " << middle;
      EXPECT_EQ(format.round(std::nextafter(high, 0), Rounding::toward_zero), low);
    }
  }
}

TEST(NumberFormats, OverflowFollowsTheMode) {
  const NumberFormat e4m3fn = number_format("e4m3fn"), e5m2 = number_format("e5m2");
  EXPECT_EQ(e4m3fn.max(), 448);
  EXPECT_EQ(number_format("e4m3").max(), 240);
  EXPECT_EQ(e4m3fn.round(464), 448);  // a tie with 480, which is odd and the code of NaN
  EXPECT_TRUE(std::isnan(e4m3fn.round(465)));
  EXPECT_TRUE(std::isnan(e4m3fn.round(INFINITY)));
  EXPECT_EQ(e4m3fn.with(Overflow::saturate).round(-1e30), -448);
  EXPECT_EQ(e5m2.round(-1e6), -INFINITY);
  EXPECT_EQ(e5m2.round(1e6, Rounding::toward_zero), 57344);
  EXPECT_TRUE(std::isnan(e5m2.with(Overflow::nan).round(1e6)));
  EXPECT_EQ(number_format("e2m1").round(1e6), 6);
  EXPECT_TRUE(std::isnan(number_format("e2m1").round(NAN)));
}

TEST(NumberFormats, NoModeMakesAnInfinityFinite) {
  for (const NumberFormat& format : number_formats()) {
    for (const Overflow mode : {Overflow::infinity, Overflow::nan, Overflow::saturate}) {
      for (const Rounding rounding :
           {Rounding::nearest_even, Rounding::toward_zero, Rounding::stochastic}) {
        for (const double x : std::vector<double>{INFINITY, -INFINITY}) {
          const double y = format.with(mode).round(x, rounding, 0xffffffffu);
          const bool kept = format.infinities || format.nan == NanCodes::none;
          EXPECT_TRUE(kept ? y == x : std::isnan(y)) << format.name << " " << x << " is " << y;
        }
        const double most = format.with(mode).round(1e300, rounding, 0);
        EXPECT_EQ(std::isfinite(most), mode == Overflow::saturate ||
                                           rounding == Rounding::toward_zero ||
                                           (!format.infinities && format.nan == NanCodes::none))
            << format.name;
      }
    }
  }
}

TEST(NumberFormats, ScalesHaveNoZeroAndNoSign) {
  const NumberFormat e8m0 = number_format("e8m0");
  EXPECT_EQ(e8m0.bits(), 8);
  EXPECT_EQ(e8m0.decode(0), 0x1p-127);
  EXPECT_EQ(e8m0.decode(254), 0x1p127);
  EXPECT_TRUE(std::isnan(e8m0.decode(255)));
  for (const double x : std::vector<double>{0.0, -0.0, -1.0, -INFINITY, NAN, INFINITY, 0x1.9p127}) {
    EXPECT_EQ(e8m0.encode(x), 255u) << x;
  }
  EXPECT_EQ(e8m0.encode(1e-45), 0u);
  EXPECT_EQ(e8m0.round(3), 4);
  EXPECT_EQ(e8m0.round(2.99), 2);
}

TEST(NumberFormats, RangesAndUnits) {
  const NumberFormat f16 = number_format("f16");
  EXPECT_EQ(f16.max(), 65504);
  EXPECT_EQ(f16.min_normal(), 0x1p-14);
  EXPECT_EQ(f16.min_positive(), 0x1p-24);
  EXPECT_EQ(f16.ulp(2048), 2);
  EXPECT_EQ(f16.ulp(0x1p-20), 0x1p-24);
  EXPECT_EQ(f16.ulp(1e9), 0);
  EXPECT_EQ(f16.round(0x1p-25), 0);  // a tie with zero, which is even
  EXPECT_EQ(f16.round(std::nextafter(0x1p-25, 1)), 0x1p-24);
}

TEST(NumberFormats, StochasticRoundingHasTheRightMean) {
  const bool long_run = std::getenv("BINADE_LONG") != nullptr;
  const int64_t count = long_run ? 10000000 : 100000;
  for (const char* name : {"e4m3fn", "e5m2", "bf16", "e2m1"}) {
    const NumberFormat format = number_format(name);
    const kernels::FormatGrid grid = format.grid();
    for (const double share : {0.5, 0.1, 0.7371}) {
      const double low = 1, gap = format.ulp(1), x = low + share * gap;
      int64_t ups = 0;
      for (int64_t i = 0; i < count; ++i) {
        const uint32_t bits = kernels::random_number(42, static_cast<uint64_t>(i));
        ups += kernels::round_to_grid(x, grid, Rounding::stochastic, bits) > low;
      }
      const double expected = share * static_cast<double>(count);
      const double sigma = std::sqrt(expected * (1 - share));
      EXPECT_NEAR(static_cast<double>(ups), expected, 4 * sigma) << name << " " << share;
    }
    EXPECT_EQ(format.round(1, Rounding::stochastic, 0xffffffffu), 1);  // exact values do not change
  }
}

TEST(NumberFormats, WrongUseIsAnError) {
  const auto expect_error = [](const std::function<void()>& run, const std::string& part) {
    const std::string what = error_of(run);
    EXPECT_NE(what.find(part), std::string::npos) << what << "\nexpected: " << part;
  };
  expect_error([] { (void)number_format("e4m3").decode(999); },
               "decode: got the code 999 for e4m3, expected at most 8 bits");
  expect_error([] { (void)number_format("e2m1").decode(16); }, "at most 4 bits");
  expect_error([] { (void)number_format("e2m1").encode(NAN); }, "it has no code");
  expect_error([] { (void)number_format("e2m1").encode(-INFINITY); },
               "encode: got an infinity for e2m1, expected a finite number: it has no code");
  expect_error([] { (void)number_format("fp8"); }, "expected e4m3, e4m3fn");
  expect_error([] { (void)number_format("e9m3"); }, "expected 1 to 8 bits of exponent");
  expect_error([] { (void)number_format("e4m3:round=up"); }, "got the option 'round'");
  expect_error([] { (void)number_format("e4m3:bias"); }, "expected option=value");
  expect_error([] { (void)number_format("e4m3:bias=7x"); }, "expected a whole number");
  expect_error([] { (void)number_format("e8m23:bias=100"); }, "expected values that f32 holds");
  expect_error([] { (void)number_format("e5m0"); }, "one code for both");
  expect_error([] { (void)number_format("e2m1:overflow=nan"); }, "expected a format with NaN");
  expect_error([] { (void)number_format("e8m0:subnormals=on"); }, "expected e8m0 without");
  expect_error([] { (void)format_scheme("mxfp5"); }, "schemes of blocks: mxfp8");
  expect_error([] { (void)format_scheme("mxfp8/tensor"); }, "for a scheme of blocks");
  expect_error([] { (void)format_scheme("e4m3fn/delayed=0"); }, "expected delayed=1");
  expect_error([] { (void)format_scheme("e4m3fn/up"); }, "got the word 'up'");
}

TEST(NumberFormats, TextIsReadBack) {
  for (const NumberFormat& format : number_formats()) {
    EXPECT_EQ(number_format(to_string(format)), format);
    EXPECT_NE(format_page(format).find(format.name + ": "), std::string::npos);
  }
  for (const char* text : {"e4m3fn:overflow=saturate", "e3m4:bias=2,infinities=off,nan=top",
                           "e5m2:subnormals=off", "e6m9"}) {
    EXPECT_EQ(to_string(number_format(text)), text);
  }
  for (const char* text :
       {"mxfp8", "mxfp8-e5m2", "mxfp6", "mxfp6-e3m2/toward-zero", "mxfp4", "nvfp4/stochastic",
        "e5m2/delayed=16/stochastic", "e4m3fn/tensor", "e5m2:overflow=infinity/tensor", "bf16"}) {
    EXPECT_EQ(to_string(format_scheme(text)), text);
    EXPECT_EQ(format_scheme(to_string(format_scheme(text))), format_scheme(text));
  }
}

}  // namespace
}  // namespace binade::number_formats_test
