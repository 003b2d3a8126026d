// Transforms of single 8-bit images, and the conversion to normalised floats. Random numbers come
// only from the stream that the caller passes: Philox of (seed, epoch, index).
#pragma once
#include <binade/data/sample.h>
#include <binade/kernels/base/philox.h>

#include <functional>
#include <span>
#include <vector>

namespace binade::data {

// Changes one image in place. Must be thread-safe.
using Transform = std::function<void(Image& image, philox::Stream& random)>;

// Applies the given transforms one after another.
Transform sequence(std::vector<Transform> steps);
// Adds `padding` zero pixels on every side, then crops a random height x width window.
Transform random_crop(int height, int width, int padding = 0);
Transform random_horizontal_flip(float probability = 0.5f);
// Crops a window of random area (share in [min_area, 1]) and aspect (3/4 to 4/3), then resizes it.
Transform random_resized_crop(int height, int width, float min_area = 0.08f);
// Resizes to exactly height x width, antialiased bilinear.
Transform resize(int height, int width);
// Resizes the short side to `side` pixels and keeps the aspect.
Transform resize_short_side(int side);
// Crops the middle height x width; pads with zeros if the image is smaller.
Transform center_crop(int height, int width);

// Antialiased bilinear resampling (a triangle filter as wide as the scale), fixed-point arithmetic.
Image resize_image(const Image& image, int height, int width);
// The window whose top left is (top, left); pixels outside the image are 0.
Image crop_image(const Image& image, int top, int left, int height, int width);
Image flip_image(const Image& image);  // left to right

// The random numbers of sample `index` in `epoch`.
philox::Stream sample_stream(uint64_t seed, int64_t epoch, int64_t index);

// y = (x / 255 - mean) / deviation per channel, for `pixels` groups of `channels` bytes.
class Normalizer {
 public:
  // Empty spans mean a mean of 0 and a deviation of 1. Throws if their sizes differ from
  // `channels`.
  Normalizer(int channels, std::span<const float> mean, std::span<const float> deviation);
  void apply(const uint8_t* x, float* y, int64_t pixels) const;  // both [pixels, channels]

 private:
  int channels_;
  std::vector<float> scale_, shift_;  // repeated to a multiple of 16 values and of channels_
};

}  // namespace binade::data
