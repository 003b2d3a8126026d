// Random transforms, with the names, the defaults and the distributions of
// torchvision.transforms.v2. Each is a data::Transform (data/transforms.h has resize, the crops and
// horizontal flips), so it goes into a Loader alone or in a sequence:
//
//   data::Loader loader(photos, {.transform = data::sequence({
//       data::random_resized_crop(224, 224), data::random_horizontal_flip(),
//       data::trivial_augment_wide(), data::random_erasing()})});
//
// A transform that moves pixels moves masks and boxes too (masks to the nearest pixel, with
// mask_fill outside); one that changes values leaves them as they are. rand_augment,
// trivial_augment_wide and aug_mix are an error for samples with masks or boxes, as in torchvision.
// `p` is a probability. All throw Error on arguments out of range.
#pragma once
#include <binade/data/augment/image_ops.h>
#include <binade/data/transforms.h>

#include <array>
#include <optional>
#include <vector>

namespace binade::data {

using Range = std::array<double, 2>;

Transform random_vertical_flip(double p = 0.5);

struct RandomRotationOptions {
  Interpolation interpolation = Interpolation::nearest;
  bool expand = false;
  std::optional<std::array<double, 2>> center = std::nullopt;  // x, y
  Fill fill = {0};
  float mask_fill = 0;
};
// An angle from `degrees`, counter-clockwise; one number d means from -d to d.
Transform random_rotation(Range degrees, const RandomRotationOptions& options = {});
Transform random_rotation(double degrees, const RandomRotationOptions& options = {});

struct RandomAffineOptions {
  std::optional<std::array<double, 2>> translate = std::nullopt;  // largest share of width, height
  std::optional<Range> scale = std::nullopt;
  std::optional<Range> shear = std::nullopt;    // degrees along x
  std::optional<Range> shear_y = std::nullopt;  // degrees along y
  Interpolation interpolation = Interpolation::nearest;
  Fill fill = {0};
  float mask_fill = 0;
  std::optional<std::array<double, 2>> center = std::nullopt;
};
Transform random_affine(Range degrees, const RandomAffineOptions& options = {});
Transform random_affine(double degrees, const RandomAffineOptions& options = {});

struct RandomPerspectiveOptions {
  double distortion_scale = 0.5;  // 0 to 1
  double p = 0.5;
  Interpolation interpolation = Interpolation::bilinear;
  Fill fill = {0};
  float mask_fill = 0;
};
Transform random_perspective(const RandomPerspectiveOptions& options = {});

// Factors are drawn from these ranges and applied in a random order; an absent one changes nothing.
// One number b means from max(0, 1 - b) to 1 + b, and for the hue from -h to h (at most 0.5).
struct ColorJitterOptions {
  std::optional<Range> brightness = std::nullopt, contrast = std::nullopt,
                       saturation = std::nullopt, hue = std::nullopt;
};
Transform color_jitter(const ColorJitterOptions& options);
Transform color_jitter(double brightness, double contrast = 0, double saturation = 0,
                       double hue = 0);

Transform grayscale(int num_output_channels = 1);
Transform random_grayscale(double p = 0.1);  // the channels stay
// kernel_size is odd.
Transform gaussian_blur(int kernel_size, Range sigma = {0.1, 2.0});
Transform random_invert(double p = 0.5);
Transform random_posterize(int bits, double p = 0.5);
Transform random_solarize(double threshold, double p = 0.5);
Transform random_adjust_sharpness(double factor, double p = 0.5);
Transform random_autocontrast(double p = 0.5);
Transform random_equalize(double p = 0.5);

// Masks are padded with the same mode, constants with `mask_fill`.
Transform pad(const Padded& padding, float mask_fill = 0);

struct RandomErasingOptions {
  double p = 0.5;
  Range scale = {0.02, 0.33};  // of the area
  Range ratio = {0.3, 3.3};    // height to width
  Fill value = {0};            // one, or one per channel
  bool random_values = false;  // instead of `value`: every byte uniform
};
Transform random_erasing(const RandomErasingOptions& options = {});

struct RandAugmentOptions {
  int num_ops = 2;
  int magnitude = 9;
  int num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::nearest;
  Fill fill = {};
};
Transform rand_augment(const RandAugmentOptions& options = {});

struct TrivialAugmentWideOptions {
  int num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::nearest;
  Fill fill = {};
};
Transform trivial_augment_wide(const TrivialAugmentWideOptions& options = {});

struct AugMixOptions {
  int severity = 3;  // 1 to 10
  int mixture_width = 3;
  int chain_depth = -1;  // -1: 1 to 3, drawn
  double alpha = 1;
  bool all_ops = true;
  Interpolation interpolation = Interpolation::bilinear;
  Fill fill = {};
};
Transform aug_mix(const AugMixOptions& options = {});

Transform sanitize_bounding_boxes(double min_size = 1, double min_area = 1);

// These apply the transform with probability p, one of several, or all in a random order.
Transform random_apply(Transform transform, double p = 0.5);
Transform random_choice(std::vector<Transform> transforms);
Transform random_order(std::vector<Transform> transforms);

}  // namespace binade::data
