// Transforms of single 8-bit images, and the conversion to normalised floats. Random numbers come
// only from the stream that the caller passes: Philox of (seed, epoch, index).
#pragma once
#include <binade/data/sample.h>
#include <binade/data/window/window.h>
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/philox.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace binade::data {

// Indices of transforms, drawn for one sample.
using ChoiceFunction = std::function<std::vector<size_t>(philox::Stream& random)>;

// Changes one image in place. Made from a function void(Image& image, philox::Stream& random),
// which must be thread-safe. Null if it has no steps. data/augment/augment.h has more of them.
//
// Masks and boxes (Sample::masks, Sample::boxes) change with their image: they get the same crops
// and flips, and a resize does not mix class ids. For a transform of your own, pass functions for
// masks and boxes too, or use pixelwise() if it leaves every pixel in its place. Otherwise samples
// with masks or boxes are an error.
//
// Each step of a sequence draws from its own stream, of (seed, epoch, sample, step). So a change in
// the number of draws of one step does not change the others.
//
// Give a step that only crops and resizes as a window (window() below): the loader then decodes
// only the part of a JPEG that it needs, and masks and boxes follow by themselves.
class Transform {
 public:
  using Function = std::function<void(Image& image, philox::Stream& random)>;
  using BoxFunction = std::function<void(Boxes& boxes, philox::Stream& random)>;
  // The window of an image of the given size.
  using WindowFunction = std::function<Window(int height, int width, philox::Stream& random)>;

  Transform() = default;
  Transform(std::nullptr_t) {}  // NOLINT
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Transform> &&
           std::invocable<F&, Image&, philox::Stream&>) Transform(F&& image)  // NOLINT
      : Transform(Function(std::forward<F>(image)), nullptr) {}
  // `mask` and `boxes` get the same random numbers as `image`. If one of them is null, samples with
  // masks or boxes are an error.
  Transform(Function image, Function mask, BoxFunction boxes = nullptr);

  explicit operator bool() const { return !steps_.empty(); }
  // Changes an image. Takes one number of `random`, so that the next call gets others.
  void operator()(Image& image, philox::Stream& random) const;
  // Changes an image with its masks and boxes in the same way.
  void operator()(Sample& sample, philox::Stream& random) const;

 private:
  friend Transform sequence(std::vector<Transform> steps);
  friend Transform window(WindowFunction choose);
  friend Transform nested(std::vector<Transform> choices, ChoiceFunction choose);
  friend class ImageRequest;
  friend class BatchBuilder;
  struct Step {
    Function image, mask;
    BoxFunction boxes;
    WindowFunction window;  // set if `image` only crops and resizes to this window
  };
  // The steps from `first_step` on; does not advance `random`.
  void apply_from(size_t first_step, Sample& sample, const philox::Stream& random) const;
  void apply_to_image(Image& image, const philox::Stream& random) const;
  // `name` for messages: " 'mask'", or empty.
  void apply_to_mask(Image& mask, const philox::Stream& random, const std::string& name) const;
  void apply_to_boxes(Boxes& boxes, const philox::Stream& random, const std::string& name) const;
  std::vector<Step> steps_;
};

// Applies the given transforms one after another; null ones are left out.
Transform sequence(std::vector<Transform> steps);
// Calls `choose` for each sample and applies the transforms that it names, in its order.
Transform nested(std::vector<Transform> choices, ChoiceFunction choose);
// A function that changes values of pixels only: it leaves masks and boxes as they are.
Transform pixelwise(Transform::Function image);
// Crops and resizes to the window that `choose` returns for each image.
Transform window(Transform::WindowFunction choose);
// Adds `padding` zero pixels on every side, then crops a random height x width window.
Transform random_crop(int height, int width, int padding = 0);
Transform random_horizontal_flip(float probability = 0.5f);
// The defaults of torchvision's RandomResizedCrop.
struct RandomResizedCropOptions {
  std::array<double, 2> scale = {0.08, 1.0};         // of the area of the image
  std::array<double, 2> ratio = {3.0 / 4, 4.0 / 3};  // width to height
  Interpolation interpolation = Interpolation::bilinear;
  bool antialias = true;
};
// Crops a window of random area and aspect, then resizes it. If ten drawn windows do not fit, it
// takes the middle window of the nearest aspect.
Transform random_resized_crop(int height, int width, const RandomResizedCropOptions& options);
Transform random_resized_crop(int height, int width, float min_area = 0.08f,
                              Interpolation interpolation = Interpolation::bilinear);
// Resizes to exactly height x width.
Transform resize(int height, int width, Interpolation interpolation = Interpolation::bilinear,
                 bool antialias = true);
// Resizes the short side to `side` pixels and keeps the aspect, rounded down; if the long side
// exceeds a `max_size` > 0, that side becomes max_size instead.
Transform resize_short_side(int side, Interpolation interpolation = Interpolation::bilinear,
                            int max_size = 0, bool antialias = true);
// Crops the middle height x width; pads with zeros if the image is smaller.
Transform center_crop(int height, int width);

// Antialiased resampling (a filter as wide as the scale) in fixed-point arithmetic. Gives the
// pixels of Pillow's Image.resize(), on every instruction set. Without `antialias`, and for nearest
// and nearest_exact, it gives torchvision's pixels.
Image resize_image(const Image& image, int height, int width,
                   Interpolation interpolation = Interpolation::bilinear, bool antialias = true);
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
