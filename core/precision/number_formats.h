// Binary number formats of up to 32 bits, and what rounding to them does: the format lab. A tensor
// keeps its dtype; round_to_format() (core/ops/format.h) gives its elements the values that they
// would have in the format.
//
//   const NumberFormat e4m3 = number_format("e4m3fn");
//   e4m3.round(17.3);                      // 18
//   e4m3.decode(0x7e);                     // 448
//   number_format("e3m4:bias=2,infinities=off,nan=top,overflow=saturate")
//
// Names follow PyPI's ml_dtypes. The FP8 formats of OCP's and NVIDIA's documents are e4m3fn and
// e5m2; e4m3 has infinities and ends at 240. `binade format NAME` prints a format.
#pragma once
#include <binade/kernels/formats/format_rounding.h>

#include <cstdint>
#include <string>
#include <vector>

namespace binade {

// Which codes are NaN.
enum class NanCodes : uint8_t {
  none,
  ieee,           // exponent all ones, but for the infinity if there is one
  top,            // the largest code of each sign
  negative_zero,  // the code of -0, and no other
};
// What a finite magnitude becomes that rounds to more than the largest finite value. With
// `infinity` in a format without infinities it is NaN, and without NaN the largest value. An
// infinity itself stays one, or becomes NaN in a format that has NaN and no infinities: in every
// mode.
enum class Overflow : uint8_t { infinity, nan, saturate };

struct NumberFormat {
  std::string name;
  int exponent_bits = 8;   // 1 to 8
  int mantissa_bits = 23;  // 0 to 23, without the implicit bit
  int bias = 127;          // a normal value is (1 + mantissa / 2^M) 2^(exponent - bias)
  bool subnormals = true;  // without them exponent field 0 holds zeros only
  bool infinities = true;
  NanCodes nan = NanCodes::ieee;
  Overflow overflow = Overflow::infinity;
  // Without a sign there is no zero: the format of scales, E8M0 (OCP MX 1.0, section 5.4.1). Zero
  // and negative values become NaN, values below the smallest one become it, ties go up.
  bool has_sign = true;

  bool operator==(const NumberFormat&) const = default;

  int bits() const { return exponent_bits + mantissa_bits + (has_sign ? 1 : 0); }
  uint64_t codes() const { return uint64_t(1) << bits(); }
  double max() const;
  double min_normal() const;
  double min_positive() const;  // subnormal if there are subnormals
  double epsilon() const;       // the gap above 1, relative: 2^-M
  // The gap between the values around x: the unit in the last place of its binade. 0 above max().
  double ulp(double x) const;
  // The value of a code. Throws for a code of more bits than the format has.
  double decode(uint64_t code) const;
  // The code of the value that x rounds to. Throws for a NaN or an infinity without a code.
  uint64_t encode(double x, Rounding rounding = Rounding::nearest_even, uint32_t random = 0) const;
  // x in the format. `random`: 32 uniform bits, for stochastic rounding. A NaN stays NaN in every
  // format, and an infinity is never finite, so that a simulation does not hide them. (A saturating
  // conversion of OCP FP8 1.0, section 5.2.1, hides an infinity as the largest value.)
  double round(double x, Rounding rounding = Rounding::nearest_even, uint32_t random = 0) const;
  NumberFormat with(Overflow wanted) const;

  kernels::FormatGrid grid() const;  // for kernels

 private:
  uint64_t top_code() const;  // of the largest finite magnitude
  double magnitude(uint64_t code) const;
};

// All named formats: e4m3, e4m3fn, e4m3fnuz, e4m3b11fnuz, e5m2, e5m2fnuz, e3m4, e3m2, e2m3, e2m1,
// e8m0, f16, bf16, tf32, f32.
const std::vector<NumberFormat>& number_formats();
// A named format, or "eXmY" with options after a colon, separated by commas: bias=N,
// subnormals=on|off, infinities=on|off, nan=none|ieee|top|negative-zero,
// overflow=infinity|nan|saturate. The options also change a named format:
// "e4m3fn:overflow=saturate". Without options "eXmY" is as IEEE 754 would have it. Throws for other
// text and for formats that are not part of f32.
NumberFormat number_format(const std::string& text);
std::string to_string(const NumberFormat& format);  // that number_format() reads back

Rounding parse_rounding(const std::string& name);  // nearest, toward-zero, stochastic
const char* to_string(Rounding rounding);

// A page about a format: its fields, range and special codes, and its values if there are at most
// 64 magnitudes.
std::string format_page(const NumberFormat& format);

}  // namespace binade
