// Window: the crop and the resize of a transform, as numbers. Consecutive windows can be combined
// with each other and with decoding, so that pixels that are not needed are not computed.
#pragma once
#include <cstdint>

namespace binade::data {

// bilinear and bicubic are antialiased when shrinking, and equal Pillow's. The other two copy
// pixels: nearest takes floor(i * scale), as torch's "nearest", nearest_exact the pixel nearest to
// the middle, as Pillow's NEAREST.
enum class Interpolation : uint8_t { bilinear, bicubic, nearest, nearest_exact };

// Cuts out height x width pixels whose top left is (top, left); those outside the image are 0. Then
// resizes them to out_height x out_width, unless these are 0.
struct Window {
  int top = 0, left = 0, height = 0, width = 0;
  int out_height = 0, out_width = 0;
  Interpolation interpolation = Interpolation::bilinear;
  bool antialias = true;  // false: shrinking too takes 2 or 4 pixels in each direction
};

}  // namespace binade::data
