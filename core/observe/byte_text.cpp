#include <binade/core/observe/byte_text.h>

#include <cmath>
#include <cstdio>
#include <iterator>

namespace binade {

std::string byte_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  constexpr double kStep = 1000, kRoundsUp = 999.5;
  size_t unit = 0;
  while (std::abs(bytes) >= kRoundsUp && unit + 1 < std::size(kUnits)) {
    bytes /= kStep;
    ++unit;
  }
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g %s", bytes, kUnits[unit]);
  return buffer;
}

}  // namespace binade
