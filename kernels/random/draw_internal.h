// Formulas of draws that every backend uses.
#pragma once
#include <binade/kernels/base/host_device.h>
#include <binade/kernels/random/draw.h>

namespace binade::kernels {

// low + floor(w range / 2^64), with w = high 2^32 + lower; range 0 means 2^64.
BINADE_HD inline int64_t integer_value(uint32_t high, uint32_t lower, int64_t low, uint64_t range) {
  const uint64_t w = uint64_t(high) << 32 | lower;
  if (range == 0) {
    return static_cast<int64_t>(static_cast<uint64_t>(low) + w);
  }
  const uint64_t range_low = range & 0xffffffffu, range_high = range >> 32;
  const uint64_t low_low = lower * range_low, low_high = lower * range_high;
  const uint64_t high_low = high * range_low, high_high = high * range_high;
  const uint64_t carry = (low_low >> 32) + (low_high & 0xffffffffu) + (high_low & 0xffffffffu);
  const uint64_t top = high_high + (low_high >> 32) + (high_low >> 32) + (carry >> 32);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + top);
}

// A number is 1 with probability p: exactly so if 2^32 p is an integer.
BINADE_HD inline bool is_success(uint32_t bits, double p) {
  return static_cast<double>(bits) < p * 0x1p32;
}

// The first class whose sum is above at * sums[classes - 1], or the nearest one with a weight: sums
// of two devices may differ in their last bit.
BINADE_HD inline int64_t chosen_class(const double* weights, const double* sums, int64_t classes,
                                      double at) {
  const double goal = at * sums[classes - 1];
  int64_t first = 0, end = classes - 1;
  while (first < end) {
    const int64_t middle = first + (end - first) / 2;
    if (sums[middle] > goal) {
      end = middle;
    } else {
      first = middle + 1;
    }
  }
  while (first > 0 && !(weights[first] > 0)) {
    --first;
  }
  while (first < classes - 1 && !(weights[first] > 0)) {
    ++first;
  }
  return first;
}

}  // namespace binade::kernels
