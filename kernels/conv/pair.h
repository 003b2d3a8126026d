// Numbers of the two spatial dimensions: sizes of kernels, strides, padding, dilation.
#pragma once
#include <cstdint>

namespace binade {

// {vertical, horizontal}, or one number for both.
struct Pair {
  int64_t vertical;
  int64_t horizontal;
  constexpr Pair(int64_t both) : vertical(both), horizontal(both) {}  // NOLINT
  constexpr Pair(int64_t vertical, int64_t horizontal)
      : vertical(vertical), horizontal(horizontal) {}

  // axis 0 is the vertical one, 1 the horizontal one.
  constexpr int64_t& operator[](int64_t axis) { return axis == 0 ? vertical : horizontal; }
  constexpr int64_t operator[](int64_t axis) const { return axis == 0 ? vertical : horizontal; }
  bool operator==(const Pair&) const = default;
};

}  // namespace binade
