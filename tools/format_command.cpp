// binade format: shows a number format, how numbers are rounded, and the values of codes.
#include "commands.h"

#include <binade/core/precision/number_formats.h>

#include <cmath>
#include <cstdio>

namespace binade::tool {
namespace {

std::string code_words(const NumberFormat& format, double value) {
  const bool coded = std::isnan(value)   ? format.nan != NanCodes::none
                     : std::isinf(value) ? format.infinities
                                         : true;
  if (!coded) {
    return "no code";
  }
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "code %llu",
                static_cast<unsigned long long>(format.encode(value)));
  return buffer;
}

void print_rounding(const NumberFormat& format, double value, const FormatOptions& o) {
  const double y = format.round(value, parse_rounding(o.rounding), o.random);
  const double error = y - value, unit = format.ulp(value);
  std::printf("%.9g -> %.9g (%s)", value, y, code_words(format, y).c_str());
  if (std::isfinite(error) && unit > 0) {
    std::printf(", error %.3g = %.3g ulp of %.3g", error, error / unit, unit);
  }
  std::printf("\n");
}

}  // namespace

int run(const FormatOptions& o) {
  const NumberFormat format = number_format(o.format);
  if (o.values.empty() && o.codes.empty()) {
    std::fputs(format_page(format).c_str(), stdout);
  }
  for (const double value : o.values) {
    print_rounding(format, value, o);
  }
  for (const uint64_t code : o.codes) {
    std::printf("%llu = %.9g\n", static_cast<unsigned long long>(code), format.decode(code));
  }
  return 0;
}

}  // namespace binade::tool
