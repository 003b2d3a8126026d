// Helpers of image_normalize that every backend uses.
#pragma once
#include <binade/kernels/base/host_device.h>
#include <binade/kernels/image/image_normalize.h>

namespace binade::kernels {

// True if y's elements lie in memory in the order of x's: channels-last without gaps.
bool keeps_order(const ImageNormalize& a);

// True if pixels change their place or are mixed.
inline bool moves_pixels(const ImageNormalize& a) {
  return a.flip.data != nullptr || !a.mix.is_none();
}

// The weight of an image's own pixel at row h and column w.
BINADE_HD inline float own_weight(const ImageMix& mix, int64_t h, int64_t w) {
  const bool inside = h >= mix.top && h < mix.bottom && w >= mix.left && w < mix.right;
  return inside ? mix.inside : mix.outside;
}

}  // namespace binade::kernels
