// Changes of one 8-bit picture (and of masks and boxes with it), with the names, the arguments and
// the values of torchvision.transforms.v2.functional on u8 tensors. "Equal" below means that every
// pixel is equal; else a pixel may differ by one level where a sum in single precision has another
// order. Pictures have 1 to 4 channels unless a function says otherwise; colour functions take 1 or
// 3, and those that mix colours return a picture of 1 channel as it is. Errors name the function.
// data/augment/augment.h has the random transforms made of them.
#pragma once
#include <binade/data/transforms.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace binade::data {

// The pixels outside: one value, one per channel, or none. Values from 0 to 255.
using Fill = std::vector<float>;

// y = x * factor; factor >= 0.
Image adjust_brightness(const Image& image, double factor);
// Blends with the mean grey: 0 is flat grey, 1 the picture itself, 2 doubles the contrast.
Image adjust_contrast(const Image& image, double factor);
// Blends with the grey picture: 0 is grey, 1 the picture itself.
Image adjust_saturation(const Image& image, double factor);
// Turns the hue by `factor` of the circle, from -0.5 to 0.5.
Image adjust_hue(const Image& image, double factor);
// Blends with an average of 3 x 3: 0 is blurred, 1 the picture itself, 2 sharper. A picture with a
// side of 2 or less stays as it is.
Image adjust_sharpness(const Image& image, double factor);
// y = 255 * gain * (x / 255)^gamma; gamma >= 0.
Image adjust_gamma(const Image& image, double gamma, double gain = 1);
// 0.2989 red + 0.587 green + 0.114 blue, truncated, in 1 or 3 equal channels.
Image rgb_to_grayscale(const Image& image, int num_output_channels = 1);
// 255 - x. Equal.
Image invert_image(const Image& image);
// Keeps the highest `bits` of 0 to 8. Equal.
Image posterize_image(const Image& image, int bits);
// Inverts the values of `threshold` (at most 255) and above. Equal.
Image solarize_image(const Image& image, double threshold);
// Stretches each channel to 0 ... 255. Equal.
Image autocontrast_image(const Image& image);
// Gives each channel a flat histogram, by Pillow's rule. Equal.
Image equalize_image(const Image& image);
// A Gaussian of kernel_height x kernel_width (odd) pixels and the given deviations in pixels; the
// border is reflected, so half a kernel must be smaller than the picture. sigma 0: 0.15 k + 0.35.
struct GaussianKernel {
  int height = 3, width = 3;
  double sigma_y = 0, sigma_x = 0;
};
Image gaussian_blur_image(const Image& image, const GaussianKernel& kernel);

// Top to bottom. Equal.
Image vertical_flip_image(const Image& image);

// How a geometric transform computes pixels. Interpolation is bilinear, or nearest (equal, except
// for pixels half way between two). An empty fill is 0 without a blend at the border (torchvision's
// None); another fill is blended at the border as torchvision blends it.
struct Warping {
  Interpolation interpolation = Interpolation::nearest;
  Fill fill = {};
};

// A rotation by `angle` degrees (counter-clockwise in rotate_image, clockwise in affine_image), a
// shift in pixels, a scale and shears in degrees, around `center` (x, y) in pixels, else around the
// middle.
struct Affine {
  double angle = 0;
  std::array<double, 2> translate = {0, 0};  // x, y
  double scale = 1;                          // above 0
  std::array<double, 2> shear = {0, 0};      // x, y
  std::optional<std::array<double, 2>> center = std::nullopt;
};
Image affine_image(const Image& image, const Affine& affine, const Warping& warping = {});

struct Rotation {
  double angle = 0;     // degrees, counter-clockwise
  bool expand = false;  // the result holds all of the picture
  std::optional<std::array<double, 2>> center = std::nullopt;  // x, y; else the middle
};
// Multiples of 90 degrees around the middle are equal.
Image rotate_image(const Image& image, const Rotation& rotation, const Warping& warping = {});

// (x, y) in pixels of the top left, top right, bottom right and bottom left.
using Corners = std::array<std::array<int, 2>, 4>;
// The eight coefficients that map `end` to `start`; throws if three of the corners lie on a line.
std::array<double, 8> perspective_coefficients(const Corners& start, const Corners& end);
// The picture whose corners `start` come to `end`.
Image perspective_image(const Image& image, const std::array<double, 8>& coefficients,
                        const Warping& warping = {.interpolation = Interpolation::bilinear});

enum class PaddingMode : uint8_t { constant, edge, reflect, symmetric };
struct Padded {
  int left = 0, top = 0, right = 0, bottom = 0;  // negative: a crop (constant and edge only)
  PaddingMode mode = PaddingMode::constant;
  Fill fill = {0};
};
// Equal.
Image pad_image(const Image& image, const Padded& padding);

// Sets the pixels of a rectangle, which must lie in the picture, to `value`. Equal.
Image erase_image(const Image& image, const Window& box, const Fill& value = {0});

// Crops of the four corners (top left, top right, bottom left, bottom right) and the middle; the
// picture must be as large as a crop. ten_crop adds the crops of the mirrored picture (upside down
// with `vertical`). Equal.
std::array<Image, 5> five_crop(const Image& image, int height, int width);
std::array<Image, 10> ten_crop(const Image& image, int height, int width, bool vertical = false);

// The same for boxes. Boxes that leave the canvas are clamped to it; none is removed.
void crop_boxes(Boxes& boxes, int top, int left, int height, int width);
void resize_boxes(Boxes& boxes, int height, int width);
void horizontal_flip_boxes(Boxes& boxes);
void vertical_flip_boxes(Boxes& boxes);
void affine_boxes(Boxes& boxes, const Affine& affine);
void rotate_boxes(Boxes& boxes, const Rotation& rotation);
void perspective_boxes(Boxes& boxes, const std::array<double, 8>& coefficients);
// Removes boxes with a side below `min_size` or an area below `min_area` pixels, and their labels.
void sanitize_boxes(Boxes& boxes, double min_size = 1, double min_area = 1);

}  // namespace binade::data
