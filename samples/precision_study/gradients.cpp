#include "gradients.h"

#include <cmath>

namespace study {
namespace {

constexpr int kFirstDrawn = -42;

double share_of_others(const ExponentCounts& counts, int64_t part) {
  const int64_t others = counts.numel() - counts.zeros();
  return others ? static_cast<double>(part) / static_cast<double>(others) : 0;
}

HalfCounts in_f16(const ExponentCounts& counts, double scale) {
  return counts.in_f16(std::ilogb(scale));
}

}  // namespace

double zeros_of(const ExponentCounts& counts) {
  return static_cast<double>(counts.zeros()) / static_cast<double>(counts.numel());
}

double below(const ExponentCounts& counts, int exponent) {
  int64_t part = 0;
  for (int e = ExponentCounts::kLeast - 1; e < exponent; ++e) {
    part += counts.at(e);
  }
  return share_of_others(counts, part);
}

double flushed(const ExponentCounts& counts, double scale) {
  return share_of_others(counts, in_f16(counts, scale).flushed);
}

double overflown(const ExponentCounts& counts, double scale) {
  return share_of_others(counts, in_f16(counts, scale).overflow);
}

Series histogram(const ExponentCounts& counts, const std::string& name) {
  Series series{.name = name, .x = {}, .y = {}, .kind = Series::steps};
  const int last = counts.largest() > 0 ? std::ilogb(counts.largest()) : 0;
  for (int exponent = kFirstDrawn; exponent <= last + 1; ++exponent) {
    series.x.push_back(exponent);
    series.y.push_back(100 * static_cast<double>(counts.at(exponent)) /
                       static_cast<double>(counts.numel()));
  }
  return series;
}

}  // namespace study
