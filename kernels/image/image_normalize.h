// Turns batches of decoded images into network inputs, in one pass.
#pragma once
#include <binade/kernels/base/kernel.h>

#include <array>

namespace binade::kernels {

inline constexpr int kMaxImageChannels = 4;

// y[n, c, h, w] = x[n, h, w, c] * scale[c] + shift[c], computed in f32 (f64 for f64) and rounded
// once. For (x / 255 - mean) / std: scale = 1 / (255 std), shift = -mean / std.
// x: u8 [N, H, W, C], row-major, C from 1 to 4. y: floating [N, C, H, W], any strides;
// channels-last keeps the order of x and is the fastest.
struct ImageNormalize {
  const View& x;
  const View& y;
  std::array<float, kMaxImageChannels> scale, shift;
};
BINADE_KERNEL(image_normalize, ImageNormalize, y)

}  // namespace binade::kernels
