#include "report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace study {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string printed(const char* format, int digits, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, digits, value);
  return text;
}

}  // namespace

std::string Check::bound() const {
  return high < kInfinity ? "\u2264 " + number(high) : "\u2265 " + number(low);
}

Check& Report::at_most(const std::string& what, double value, double bound) {
  return checks.emplace_back(Check{what, value, -kInfinity, bound});
}

Check& Report::at_least(const std::string& what, double value, double bound) {
  return checks.emplace_back(Check{what, value, bound, kInfinity});
}

bool Report::holds() const {
  return !checks.empty() &&
         std::all_of(checks.begin(), checks.end(), [](const Check& c) { return c.holds(); });
}

std::string Report::powerless() const {
  std::string names;
  bool any = false;
  for (const Check& check : checks) {
    any |= check.by_mechanism;
    if (check.by_mechanism && check.holds()) {
      names += (names.empty() ? "" : "; ") + check.what;
    }
  }
  return any ? names : "no check depends on the mechanism";
}

std::string number(double value) { return printed("%.*g", 3, value); }
std::string fixed(double value, int digits) { return printed("%.*f", digits, value); }
std::string percent(double share) {
  const double shown = 100 * share;
  return (shown != 0 && std::abs(shown) < 0.1 ? number(shown) : fixed(shown, 1)) + "%";
}
std::string power_of_two(double value) {
  return "2^" + std::to_string(static_cast<int>(std::lround(std::log2(value))));
}
std::string bytes(double count) {
  return count < 1e6 ? fixed(count / 1e3, 1) + " kB" : fixed(count / 1e6, 2) + " MB";
}

}  // namespace study
