// Formats as text: parsing, printing and the page of `binade format`.
#include <binade/core/precision/number_formats.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace binade {
namespace {

constexpr const char* kNanCodeNames[] = {"none", "ieee", "top", "negative-zero"};
constexpr const char* kOverflowNames[] = {"infinity", "nan", "saturate"};
constexpr const char* kRoundingNames[] = {"nearest", "toward-zero", "stochastic"};

template <size_t N>
int choice_of(const char* what, const std::string& name, const char* const (&names)[N]) {
  std::string list;
  for (size_t i = 0; i < N; ++i) {
    if (name == names[i]) {
      return static_cast<int>(i);
    }
    list += (i == 0 ? "" : i + 1 == N ? " or " : ", ") + std::string(names[i]);
  }
  fail(what, ": got '", printable(name), "', expected ", list);
}

bool switch_of(const std::string& key, const std::string& value) {
  constexpr const char* kSwitch[] = {"off", "on"};
  return choice_of(key.c_str(), value, kSwitch) == 1;
}

// A whole number that takes all of the text.
bool whole_number(std::string_view text, int& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty();
}

void set_option(NumberFormat& format, const std::string& key, const std::string& value) {
  if (key == "bias") {
    check(whole_number(value, format.bias), "number format: got bias = '", printable(value),
          "', expected a whole number");
  } else if (key == "subnormals") {
    format.subnormals = switch_of(key, value);
  } else if (key == "infinities") {
    format.infinities = switch_of(key, value);
  } else if (key == "nan") {
    format.nan = static_cast<NanCodes>(choice_of("nan", value, kNanCodeNames));
  } else if (key == "overflow") {
    format.overflow = static_cast<Overflow>(choice_of("overflow", value, kOverflowNames));
  } else {
    fail("number format: got the option '", printable(key),
         "', expected bias, subnormals, infinities, nan or overflow");
  }
}

// The format without options: a name, or eXmY.
NumberFormat base_format(const std::string& name) {
  std::string names;
  for (const NumberFormat& known : number_formats()) {
    if (known.name == name) {
      return known;
    }
    names += (names.empty() ? "" : ", ") + known.name;
  }
  NumberFormat format;
  const size_t m = name.find('m');
  const bool parsed = name.size() > 3 && name[0] == 'e' && m != std::string::npos &&
                      whole_number(std::string_view(name).substr(1, m - 1), format.exponent_bits) &&
                      whole_number(std::string_view(name).substr(m + 1), format.mantissa_bits);
  check(parsed, "number format: got '", printable(name), "', expected ", names, " or eXmY");
  check(format.exponent_bits >= 1 && format.exponent_bits <= 8 && format.mantissa_bits >= 0 &&
            format.mantissa_bits <= 23,
        "number format: got ", printable(name),
        ", expected 1 to 8 bits of exponent and 0 to 23 of mantissa");
  format.name = name;
  format.bias = (1 << (format.exponent_bits - 1)) - 1;
  return format;
}

void check_parts(const NumberFormat& f, const std::string& given) {
  const bool room = f.mantissa_bits > 0 || f.nan != NanCodes::ieee || !f.infinities;
  check(room, "number format: got ", printable(given),
        " with NaN and infinities, but without a mantissa there is one code for both; set nan=top, "
        "or infinities=off");
  check(f.exponent_bits + f.mantissa_bits >= 2, "number format: got ", printable(given),
        ", expected at least 2 bits beside the sign");
  check(f.has_sign || (!f.subnormals && !f.infinities && f.nan == NanCodes::top),
        "number format: got ", printable(given),
        ", expected e8m0 without subnormals and "
        "infinities, with nan=top");
  check(f.overflow != Overflow::nan || f.nan != NanCodes::none, "number format: got ",
        printable(given), ", expected a format with NaN for overflow=nan");
  check(f.bias >= -126 && f.bias <= 254, "number format: got bias = ", f.bias,
        ", expected -126 to 254");
  check(f.max() > 0 && f.max() <= 0x1.fffffep127 && f.min_positive() >= 0x1p-149,
        "number format: got ", printable(given), " from ", f.min_positive(), " to ", f.max(),
        ", expected values that f32 holds");
}

std::string format_number(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

std::string power_text(double value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5 ? text(" = 2^", exponent - 1) : "";
}

std::string code_text(const NumberFormat& f, uint64_t code) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%0*llx", (f.bits() + 3) / 4,
                static_cast<unsigned long long>(code));
  return buffer;
}

std::string special_codes(const NumberFormat& f) {
  std::string out;
  if (f.infinities) {
    out += "infinity     " + code_text(f, f.encode(INFINITY)) + "\n";
  }
  if (f.nan == NanCodes::none) {
    return out + "NaN          none\n";
  }
  const char* which = f.nan == NanCodes::ieee            ? " and all above the infinity"
                      : f.nan == NanCodes::negative_zero ? ", the code of -0"
                                                         : "";
  return out + "NaN          " + code_text(f, f.encode(NAN)) + which + "\n";
}

}  // namespace

NumberFormat number_format(const std::string& text) {
  const size_t colon = text.find(':');
  NumberFormat format = base_format(text.substr(0, colon));
  for (size_t from = colon; from != std::string::npos;) {
    const size_t comma = text.find(',', from + 1);
    const std::string option = text.substr(from + 1, comma - from - 1);
    const size_t equals = option.find('=');
    check(equals != std::string::npos, "number format: got '", printable(option),
          "', expected option=value");
    set_option(format, option.substr(0, equals), option.substr(equals + 1));
    from = comma;
  }
  if (colon != std::string::npos) {
    format.name = text;
  }
  check_parts(format, text);
  return format;
}

std::string to_string(const NumberFormat& format) {
  std::string out = format.name.substr(0, format.name.find(':'));
  const NumberFormat base = base_format(out);
  char separator = ':';
  const auto add = [&](const std::string& option) {
    out += separator + option;
    separator = ',';
  };
  if (format.bias != base.bias) {
    add("bias=" + std::to_string(format.bias));
  }
  if (format.subnormals != base.subnormals) {
    add(format.subnormals ? "subnormals=on" : "subnormals=off");
  }
  if (format.infinities != base.infinities) {
    add(format.infinities ? "infinities=on" : "infinities=off");
  }
  if (format.nan != base.nan) {
    add(std::string("nan=") + kNanCodeNames[static_cast<int>(format.nan)]);
  }
  if (format.overflow != base.overflow) {
    add(std::string("overflow=") + kOverflowNames[static_cast<int>(format.overflow)]);
  }
  return out;
}

Rounding parse_rounding(const std::string& name) {
  return static_cast<Rounding>(choice_of("rounding", name, kRoundingNames));
}
const char* to_string(Rounding rounding) { return kRoundingNames[static_cast<int>(rounding)]; }

std::string format_page(const NumberFormat& f) {
  const auto value = [](double x) { return format_number(x) + power_text(x); };
  std::string out =
      text(to_string(f), ": ", f.bits(), " bits: ", f.has_sign ? "sign, " : "no sign, ",
           f.exponent_bits, " of exponent (bias ", f.bias, "), ", f.mantissa_bits,
           " of mantissa\n\nlargest      ", value(f.max()), "  ", code_text(f, f.encode(f.max())),
           "\nsmallest normal ", value(f.min_normal()), "\nsmallest     ", value(f.min_positive()),
           f.subnormals ? " (subnormal)" : "", "\nulp of 1     ", value(f.epsilon()),
           "\nbinades      ", std::ilogb(f.max()) - std::ilogb(f.min_positive()) + 1,
           "\noverflow     ", kOverflowNames[static_cast<int>(f.overflow)], "\nzero         ",
           f.has_sign ? "0x0" : "none: zero and negative values become NaN", "\n");
  out += special_codes(f);
  const uint64_t magnitudes = f.codes() / (f.has_sign ? 2 : 1);
  constexpr uint64_t kMostListed = 64;
  if (magnitudes <= kMostListed) {
    out += "\nvalues, by code";
    for (uint64_t code = 0; code < magnitudes; ++code) {
      out +=
          (code % 8 == 0 ? "\n" + code_text(f, code) + "  " : "  ") + format_number(f.decode(code));
    }
    out += "\n";
  }
  return out;
}

}  // namespace binade
