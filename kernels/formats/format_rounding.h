// Rounding to any binary format of up to 32 bits, the same on every device: the value is scaled by
// a power of two so that the unit in the last place becomes 1, which is exact in double, and the
// whole number next to it is chosen. Sources: IEEE 754-2019, section 4.3; OCP 8-bit Floating Point
// Specification 1.0, section 5.2 (saturation, NaN); stochastic rounding as in Gupta et al., "Deep
// Learning with Limited Numerical Precision", ICML 2015.
#pragma once
#include <binade/kernels/base/host_device.h>
#include <binade/kernels/base/philox.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace binade {

// nearest_even takes the nearest value, and of two equally near ones the one with an even code.
// toward_zero never rounds a finite value to an infinity. stochastic takes the next larger
// magnitude with a probability equal to the distance to the smaller one in units of the gap,
// rounded to 32 bits: the mean of many roundings is the value.
enum class Rounding : uint8_t { nearest_even, toward_zero, stochastic };

}  // namespace binade

namespace binade::kernels {

// The values of a format, as the rounding needs them.
struct FormatGrid {
  double max = 0;     // the largest finite value
  double beyond = 0;  // the result for larger finite values: max, an infinity or NaN
  // The result for an infinity: itself, or NaN. It is never finite: overflow, also with saturation,
  // is about finite values, and an infinite gradient must reach the check of a loss scaler.
  double infinite = std::numeric_limits<double>::infinity();
  int mantissa_bits = 0;
  int min_exponent = 0;  // of the smallest normal value
  int bias = 0;
  bool subnormals = true;
  bool is_signed = true;  // false: no zero either, so zero and negative values become NaN
  bool negative_zero = true;
};

BINADE_HD inline double power_of_two(int exponent) {  // exponent from -1022 to 1023
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// True if a value that lies `rest` (0 <= rest < 1) of a gap above a format's value rounds up.
BINADE_HD inline bool rounds_up(double rest, bool odd, Rounding rounding, uint32_t random) {
  if (rounding == Rounding::toward_zero) {
    return false;
  }
  if (rounding == Rounding::nearest_even) {
    return rest > 0.5 || (rest == 0.5 && odd);
  }
  const double scaled = rest * 0x1p32, whole = std::floor(scaled), left = scaled - whole;
  const bool odd_whole = (static_cast<uint64_t>(whole) & 1) != 0;
  const double chance = whole + (left > 0.5 || (left == 0.5 && odd_whole) ? 1 : 0);
  return chance + static_cast<double>(random) >= 0x1p32;
}

// a > 0, finite, rounded to a multiple of the unit of its binade (the result may exceed max).
BINADE_HD inline double round_magnitude(double a, const FormatGrid& g, Rounding rounding,
                                        uint32_t random) {
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(a) >> 52) - 1023;
  const bool below = exponent < g.min_exponent;
  const int unit = below && !g.subnormals ? g.min_exponent
                                          : (below ? g.min_exponent : exponent) - g.mantissa_bits;
  const double scaled = a * power_of_two(-unit), whole = std::floor(scaled);
  // Without mantissa bits the code is the exponent. Between two scales (a format without a sign)
  // a tie goes up, as in ml_dtypes.
  const bool odd = g.mantissa_bits > 0 || whole == 0 ? (static_cast<uint64_t>(whole) & 1) != 0
                                                     : !g.is_signed || ((unit + g.bias) & 1) != 0;
  const double y =
      (whole + (rounds_up(scaled - whole, odd, rounding, random) ? 1 : 0)) * power_of_two(unit);
  const double least = power_of_two(g.min_exponent);
  return !g.is_signed && y < least ? least : y;
}

// x in the format. `random` has 32 uniform bits and is read by stochastic rounding alone. NaN stays
// NaN, also where the format has none, and no infinity becomes finite.
BINADE_HD inline double round_to_grid(double x, const FormatGrid& g, Rounding rounding,
                                      uint32_t random) {
  if (x != x) {
    return x;
  }
  const bool negative = (std::bit_cast<uint64_t>(x) >> 63) != 0;
  const double a = negative ? -x : x;
  if (!g.is_signed && (negative || a == 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  double y = a;
  if (a != 0) {
    const bool finite = a <= std::numeric_limits<double>::max();
    y = a > 2 * g.max ? 4 * g.max : round_magnitude(a, g, rounding, random);
    if (y > g.max) {
      y = !finite ? g.infinite : rounding == Rounding::toward_zero ? g.max : g.beyond;
    }
  }
  return negative && (y != 0 || g.negative_zero) ? -y : y;
}

// Number `index` of a Philox sequence.
BINADE_HD inline uint32_t random_number(uint64_t seed, uint64_t index) {
  const philox::Block block = philox::generate(seed, index / 4);
  return block[static_cast<size_t>(index % 4)];
}

}  // namespace binade::kernels
