#include <binade/core/precision/number_formats.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace binade {
namespace {

constexpr double kFormatNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kFormatInfinity = std::numeric_limits<double>::infinity();

NumberFormat ieee_format(std::string name, int exponent_bits, int mantissa_bits) {
  return {.name = std::move(name),
          .exponent_bits = exponent_bits,
          .mantissa_bits = mantissa_bits,
          .bias = (1 << (exponent_bits - 1)) - 1};
}

NumberFormat finite_format(std::string name, int exponent_bits, int mantissa_bits, NanCodes nan,
                           int bias_above = 0) {
  NumberFormat format = ieee_format(std::move(name), exponent_bits, mantissa_bits);
  format.bias += bias_above;
  format.infinities = false;
  format.nan = nan;
  format.overflow = nan == NanCodes::none ? Overflow::saturate : Overflow::nan;
  return format;
}

NumberFormat scale_format() {
  NumberFormat format = finite_format("e8m0", 8, 0, NanCodes::top);
  format.has_sign = false;
  format.subnormals = false;
  return format;
}

bool has_nan_code(const NumberFormat& f) { return f.nan != NanCodes::none; }

}  // namespace

const std::vector<NumberFormat>& number_formats() {
  static const std::vector<NumberFormat> all = {
      ieee_format("e4m3", 4, 3),
      finite_format("e4m3fn", 4, 3, NanCodes::top),
      finite_format("e4m3fnuz", 4, 3, NanCodes::negative_zero, 1),
      finite_format("e4m3b11fnuz", 4, 3, NanCodes::negative_zero, 4),
      ieee_format("e5m2", 5, 2),
      finite_format("e5m2fnuz", 5, 2, NanCodes::negative_zero, 1),
      ieee_format("e3m4", 3, 4),
      finite_format("e3m2", 3, 2, NanCodes::none),
      finite_format("e2m3", 2, 3, NanCodes::none),
      finite_format("e2m1", 2, 1, NanCodes::none),
      scale_format(),
      ieee_format("f16", 5, 10),
      ieee_format("bf16", 8, 7),
      ieee_format("tf32", 8, 10),
      ieee_format("f32", 8, 23)};
  return all;
}

uint64_t NumberFormat::top_code() const {
  const uint64_t magnitudes = uint64_t(1) << (exponent_bits + mantissa_bits);
  if (nan == NanCodes::ieee) {
    return magnitudes - 1 - (uint64_t(1) << mantissa_bits);
  }
  return magnitudes - 1 - (nan == NanCodes::top ? 1 : 0) - (infinities ? 1 : 0);
}

double NumberFormat::magnitude(uint64_t code) const {
  const auto field = static_cast<int>(code >> mantissa_bits);
  const auto fraction = static_cast<double>(code & ((uint64_t(1) << mantissa_bits) - 1));
  const double part = std::ldexp(fraction, -mantissa_bits);
  if (field == 0 && has_sign) {
    return subnormals ? std::ldexp(part, 1 - bias) : 0;
  }
  return std::ldexp(1 + part, field - bias);
}

double NumberFormat::max() const { return magnitude(top_code()); }
double NumberFormat::min_normal() const { return std::ldexp(1.0, (has_sign ? 1 : 0) - bias); }
double NumberFormat::min_positive() const {
  return subnormals ? std::ldexp(1.0, 1 - bias - mantissa_bits) : min_normal();
}
double NumberFormat::epsilon() const { return std::ldexp(1.0, -mantissa_bits); }

double NumberFormat::ulp(double x) const {
  const double a = std::fabs(x);
  if (!(a <= max())) {
    return 0;
  }
  if (a < min_normal()) {
    return min_positive();
  }
  return std::ldexp(1.0, std::ilogb(a) - mantissa_bits);
}

double NumberFormat::decode(uint64_t code) const {
  check(code < codes(), "decode: got the code ", code, " for ", name, ", expected at most ", bits(),
        " bits");
  const uint64_t sign_bit = has_sign ? codes() / 2 : 0;
  const bool negative = (code & sign_bit) != 0;
  const uint64_t own = code & ~sign_bit, top = top_code();
  if (nan == NanCodes::negative_zero && negative && own == 0) {
    return kFormatNan;
  }
  if (own > top) {
    const double special = infinities && own == top + 1 ? kFormatInfinity : kFormatNan;
    return negative ? -special : special;
  }
  const double value = magnitude(own);
  return negative ? -value : value;
}

uint64_t NumberFormat::encode(double x, Rounding rounding, uint32_t random) const {
  const double y = round(x, rounding, random);
  if (std::isnan(y)) {
    check(has_nan_code(*this), "encode: got NaN for ", name, ", expected a number: it has no code");
    return nan == NanCodes::negative_zero ? codes() / 2
           : nan == NanCodes::top
               ? (has_sign ? codes() / 2 : codes()) - 1
               : codes() / 2 - (uint64_t(1) << mantissa_bits) / 2 - (mantissa_bits == 0 ? 1 : 0);
  }
  const uint64_t sign = std::signbit(y) ? codes() / 2 : 0;
  const double a = std::fabs(y);
  if (std::isinf(a)) {
    check(infinities, "encode: got an infinity for ", name,
          ", expected a finite number: it has no code");
    return sign + top_code() + 1;
  }
  if (a < min_normal()) {
    return sign + static_cast<uint64_t>(subnormals ? a / min_positive() : 0);
  }
  const int exponent = std::ilogb(a);
  const double part = std::ldexp(a, mantissa_bits - exponent);
  return sign + (static_cast<uint64_t>(exponent + bias) << mantissa_bits) +
         static_cast<uint64_t>(part) - (uint64_t(1) << mantissa_bits);
}

double NumberFormat::round(double x, Rounding rounding, uint32_t random) const {
  return kernels::round_to_grid(x, grid(), rounding, random);
}

NumberFormat NumberFormat::with(Overflow wanted) const {
  NumberFormat format = *this;
  format.overflow = wanted;
  return format;
}

kernels::FormatGrid NumberFormat::grid() const {
  const double largest = max();
  const double none = has_nan_code(*this) ? kFormatNan : largest;
  double beyond = largest;
  if (overflow == Overflow::nan) {
    beyond = none;
  } else if (overflow == Overflow::infinity) {
    beyond = infinities ? kFormatInfinity : none;
  }
  return {.max = largest,
          .beyond = beyond,
          .infinite = infinities || !has_nan_code(*this) ? kFormatInfinity : kFormatNan,
          .mantissa_bits = mantissa_bits,
          .min_exponent = (has_sign ? 1 : 0) - bias,
          .bias = bias,
          .subnormals = subnormals,
          .is_signed = has_sign,
          .negative_zero = nan != NanCodes::negative_zero};
}

}  // namespace binade
