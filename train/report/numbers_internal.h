// Numbers, and their texts, that several parts of train need. Internal to train.
#pragma once
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

namespace binade::train {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

inline bool is_power_of_two(double value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5;
}

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// 12.345 with one decimal: "12.3".
inline std::string fixed(double value, int decimals = 1) {
  char out[40];
  std::snprintf(out, sizeof out, "%.*f", decimals, value);
  return out;
}

// 0.5 without decimals: "50%".
inline std::string percent_of(double share, int decimals) {
  return fixed(100 * share, decimals) + "%";
}

}  // namespace binade::train
