// Transforms of single 8-bit images, and the conversion to normalised floats. Random numbers come
// only from the stream that the caller passes: Philox of (seed, epoch, index).
#pragma once
#include <binade/data/sample.h>
#include <binade/data/window/window.h>
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/philox.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace binade::data {

// Changes one image in place. Made from a function void(Image& image, philox::Stream& random),
// which must be thread-safe. Null if it has no steps.
//
// Masks (Sample::masks) change with their image: crops and flips are the same, and sizes change
// without mixing class ids. A function of your own says what it does to masks: give a second one,
// or use pixelwise() if it leaves every pixel in its place. Otherwise masks are an error.
//
// A step that only crops and resizes is best given as a window (window() below): the loader then
// decodes no more of a JPEG than it needs, and masks follow by themselves.
class Transform {
 public:
  using Function = std::function<void(Image& image, philox::Stream& random)>;
  // The window of an image of the given size.
  using WindowFunction = std::function<Window(int height, int width, philox::Stream& random)>;

  Transform() = default;
  Transform(std::nullptr_t) {}  // NOLINT
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Transform> &&
           std::invocable<F&, Image&, philox::Stream&>) Transform(F&& image)  // NOLINT
      : Transform(Function(std::forward<F>(image)), nullptr) {}
  // `mask` gets the same random numbers as `image`.
  Transform(Function image, Function mask);

  explicit operator bool() const { return !steps_.empty(); }
  void operator()(Image& image, philox::Stream& random) const { apply(image, {}, random); }
  // Changes an image and its masks in the same way.
  void apply(Image& image, std::span<std::pair<std::string, Image>> masks,
             philox::Stream& random) const;

 private:
  friend Transform sequence(std::vector<Transform> steps);
  friend Transform window(WindowFunction choose);
  friend class ImageRequest;
  friend class BatchBuilder;
  struct Step {
    Function image, mask;
    WindowFunction window;  // or this one alone
  };
  void apply_from(size_t first_step, Image& image, std::span<std::pair<std::string, Image>> masks,
                  philox::Stream& random) const;
  std::vector<Step> steps_;
};

// Applies the given transforms one after another; null ones are left out.
Transform sequence(std::vector<Transform> steps);
// A function that changes values of pixels only: it leaves masks as they are.
Transform pixelwise(Transform::Function image);
// Crops and resizes to the window that `choose` returns for each image.
Transform window(Transform::WindowFunction choose);
// Adds `padding` zero pixels on every side, then crops a random height x width window.
Transform random_crop(int height, int width, int padding = 0);
Transform random_horizontal_flip(float probability = 0.5f);
// Crops a window of random area (share in [min_area, 1]) and aspect (3/4 to 4/3), then resizes it.
Transform random_resized_crop(int height, int width, float min_area = 0.08f,
                              Interpolation interpolation = Interpolation::bilinear);
// Resizes to exactly height x width, antialiased.
Transform resize(int height, int width, Interpolation interpolation = Interpolation::bilinear);
// Resizes the short side to `side` pixels and keeps the aspect.
Transform resize_short_side(int side, Interpolation interpolation = Interpolation::bilinear);
// Crops the middle height x width; pads with zeros if the image is smaller.
Transform center_crop(int height, int width);

// Antialiased resampling (a filter as wide as the scale) in fixed-point arithmetic: the pixels of
// Pillow's Image.resize(), on every instruction set.
Image resize_image(const Image& image, int height, int width,
                   Interpolation interpolation = Interpolation::bilinear);
// The window whose top left is (top, left); pixels outside the image are 0.
Image crop_image(const Image& image, int top, int left, int height, int width);
Image flip_image(const Image& image);  // left to right
// Each pixel is the nearest one of `image`: for class ids, which must not be mixed.
Image resize_nearest(const Image& image, int height, int width);

// The random numbers of sample `index` in `epoch`.
philox::Stream sample_stream(uint64_t seed, int64_t epoch, int64_t index);

// y = (x / 255 - mean) / deviation per channel, for `pixels` groups of `channels` bytes.
class Normalizer {
 public:
  // Empty spans mean a mean of 0 and a deviation of 1. Throws if their sizes differ from
  // `channels`.
  Normalizer(int channels, std::span<const float> mean, std::span<const float> deviation);
  void apply(const uint8_t* x, float* y, int64_t pixels) const;  // both [pixels, channels]
  // y is f32, f16 or bf16, rounded once: [pixels, channels], or with a `plane` > 0 channel by
  // channel, that many elements apart.
  void apply(const uint8_t* x, void* y, DType dtype, int64_t pixels, int64_t plane = 0) const;

 private:
  int channels_;
  std::vector<float> scale_, shift_;  // of 16 pixels
};

}  // namespace binade::data
