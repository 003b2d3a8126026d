// Turns batches of decoded images into network inputs, in one pass: mirrors, mixes, normalises,
// casts and lays out.
#pragma once
#include <binade/kernels/base/kernel.h>

#include <array>

namespace binade::kernels {

inline constexpr int kMaxImageChannels = 4;

// Each image is mixed with the one before it (the first with the last): a pixel is
// weight * own + (1 - weight) * other, with one weight inside a box and another outside. MixUp has
// the weight `inside` in a box that holds all, CutMix has inside = 0.
struct ImageMix {
  float inside = 1, outside = 1;
  int64_t top = 0, left = 0, bottom = 0, right = 0;  // of the box; bottom and right are excluded

  bool is_none() const { return inside == 1 && outside == 1; }
};

// y[n, c, h, w] = x[n, h, w, c] * scale[c] + shift[c], computed in f32 (f64 for f64) and rounded
// once. For (x / 255 - mean) / std: scale = 1 / (255 std), shift = -mean / std.
// x: u8 [N, H, W, C], row-major, C from 1 to 4. y: floating [N, C, H, W], any strides;
// channels-last keeps the order of x and is the fastest.
// flip: u8 [N], row-major, or kNoView: images with a value other than 0 are mirrored, before `mix`.
struct ImageNormalize {
  const View& x;
  const View& y;
  std::array<float, kMaxImageChannels> scale, shift;
  const View& flip = kNoView;
  ImageMix mix = {};
};
BINADE_KERNEL(image_normalize, ImageNormalize, y)

}  // namespace binade::kernels
