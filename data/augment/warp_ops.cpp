// Rotations, affine and perspective changes. Matrices are computed in double and rounded, then
// places in single precision, both as torchvision does it.
#include <binade/data/augment/image_ops_internal.h>
#include <binade/data/augment/matrix_internal.h>
#include <binade/kernels/image/augment_bytes_isa_internal.h>

#include <algorithm>
#include <cmath>

namespace binade::data {
namespace {

using internal::AffineMatrix;

constexpr int kMaxWarpSide = 32'768;

void check_warping(const char* op, const Image& image, const Warping& warping) {
  check(image.channels >= 1 && image.channels <= kernels::kWarpMaxChannels, op,
        ": got an image of ", image.channels, " channels, expected 1 to 4");
  check(image.height >= 1 && image.width >= 1 && image.height <= kMaxWarpSide &&
            image.width <= kMaxWarpSide,
        op, ": got an image of ", image.height, " x ", image.width, ", expected sides of 1 to ",
        kMaxWarpSide);
  check(warping.interpolation == Interpolation::nearest ||
            warping.interpolation == Interpolation::bilinear,
        op, ": got another interpolation, expected nearest or bilinear");
}

void check_finite(const char* op, std::initializer_list<double> values) {
  check(std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); }), op,
        ": got a number that is not finite");
}

// A warp of `image` to height x width, without the matrix.
kernels::WarpBytes warp_of(const Image& image, Image& out, const Warping& warping,
                           const std::vector<float>& fill) {
  return {.x = image.pixels.data(),
          .height = image.height,
          .width = image.width,
          .channels = image.channels,
          .y = out.pixels.data(),
          .out_height = out.height,
          .out_width = out.width,
          .center_x = static_cast<float>(out.width - 1) * 0.5f,
          .center_y = static_cast<float>(out.height - 1) * 0.5f,
          .matrix = {},
          .projective = false,
          .nearest = warping.interpolation == Interpolation::nearest,
          .fill = fill.empty() ? nullptr : fill.data()};
}

// Sets two rows of the matrix, from pixels to -1 ... 1 of a picture of that size.
void set_rows(kernels::WarpBytes& warp, const float* m, int height, int width) {
  const float half_width = 0.5f * static_cast<float>(width),
              half_height = 0.5f * static_cast<float>(height);
  for (int i = 0; i < 3; ++i) {
    warp.matrix[i] = m[i] / half_width;
    warp.matrix[3 + i] = m[3 + i] / half_height;
  }
}

Image apply_affine(const char* op, const Image& image, const AffineMatrix& matrix,
                   std::array<int, 2> size, const Warping& warping) {
  const std::vector<float> fill = warping.fill.empty()
                                      ? std::vector<float>()
                                      : internal::fill_for(op, warping.fill, image.channels);
  Image out = make_image(size[0], size[1], image.channels);
  kernels::WarpBytes warp = warp_of(image, out, warping, fill);
  float m[6];
  std::transform(matrix.begin(), matrix.end(), m, [](double v) { return static_cast<float>(v); });
  set_rows(warp, m, image.height, image.width);
  kernels::warp_bytes_best(warp);
  return out;
}

Image quarter_turn(const Image& image, bool clockwise) {
  Image out = make_image(image.width, image.height, image.channels);
  for (int y = 0; y < out.height; ++y) {
    uint8_t* to = out.row(y);
    for (int x = 0; x < out.width; ++x) {
      const int from_y = clockwise ? image.height - 1 - x : x;
      const int from_x = clockwise ? y : image.width - 1 - y;
      to = std::copy_n(image.row(from_y) + ptrdiff_t{from_x} * image.channels, image.channels, to);
    }
  }
  return out;
}

// {height, width} of a canvas that holds the whole warped picture, computed as in Pillow.
std::array<int, 2> expanded_size(const AffineMatrix& inverse, int height, int width) {
  const float half_width = 0.5f * static_cast<float>(width),
              half_height = 0.5f * static_cast<float>(height);
  float low[2] = {0, 0}, high[2] = {0, 0};
  for (int corner = 0; corner < 4; ++corner) {
    const float x = corner < 2 ? -half_width : half_width;
    const float y = corner == 0 || corner == 3 ? -half_height : half_height;
    for (size_t row = 0; row < 2; ++row) {
      const float at = x * static_cast<float>(inverse[3 * row]) +
                       y * static_cast<float>(inverse[3 * row + 1]) +
                       static_cast<float>(inverse[3 * row + 2]);
      low[row] = corner == 0 ? at : std::min(low[row], at);
      high[row] = corner == 0 ? at : std::max(high[row], at);
    }
  }
  const float half[2] = {half_width, half_height};
  int size[2];
  for (size_t row = 0; row < 2; ++row) {
    constexpr float kInverse = 1e4f, kTolerance = 1e-4f;
    const float top = std::ceil(std::trunc((high[row] + half[row]) * kInverse) * kTolerance);
    const float bottom = std::floor(std::trunc((low[row] + half[row]) * kInverse) * kTolerance);
    size[row] = static_cast<int>(top - bottom);
  }
  return {size[1], size[0]};
}

}  // namespace

namespace internal {

AffineMatrix inverse_of(const Affine& a, std::array<double, 2> center) {
  constexpr double kDegree = 3.14159265358979323846 / 180;
  const double rotation = a.angle * kDegree, sx = a.shear[0] * kDegree, sy = a.shear[1] * kDegree;
  const double p = std::cos(rotation - sy) / std::cos(sy);
  const double q = -(p * std::tan(sx) + std::sin(rotation));
  const double r = std::sin(rotation - sy) / std::cos(sy);
  const double s = std::cos(rotation) - r * std::tan(sx);
  AffineMatrix m{s / a.scale, -q / a.scale, 0, -r / a.scale, p / a.scale, 0};
  const double x = center[0] + a.translate[0], y = center[1] + a.translate[1];
  m[2] = center[0] - m[0] * x - m[1] * y;
  m[5] = center[1] - m[3] * x - m[4] * y;
  return m;
}

AffineMatrix forward_of(const Affine& a, std::array<double, 2> center) {
  constexpr double kDegree = 3.14159265358979323846 / 180;
  const double rotation = a.angle * kDegree, sx = a.shear[0] * kDegree, sy = a.shear[1] * kDegree;
  const double p = std::cos(rotation - sy) / std::cos(sy);
  const double q = -(p * std::tan(sx) + std::sin(rotation));
  const double r = std::sin(rotation - sy) / std::cos(sy);
  const double s = std::cos(rotation) - r * std::tan(sx);
  AffineMatrix m{p * a.scale, q * a.scale, 0, r * a.scale, s * a.scale, 0};
  m[2] = center[0] + a.translate[0] - m[0] * center[0] - m[1] * center[1];
  m[5] = center[1] + a.translate[1] - m[3] * center[0] - m[4] * center[1];
  return m;
}

Affine affine_of(const Rotation& rotation) {
  double turns = std::fmod(rotation.angle, 360);
  turns = turns < 0 ? turns + 360 : turns;
  return {.angle = -turns, .center = rotation.center};
}

std::array<double, 2> from_middle(const std::optional<std::array<double, 2>>& center, int height,
                                  int width) {
  return center ? std::array{(*center)[0] - width * 0.5, (*center)[1] - height * 0.5}
                : std::array{0.0, 0.0};
}

std::array<int, 2> rotated_size(const Rotation& rotation, int height, int width) {
  const Affine affine = affine_of(rotation);
  if (!rotation.expand) {
    return {height, width};
  }
  if (!rotation.center && std::fmod(affine.angle, 90) == 0) {
    const bool turns = std::fmod(affine.angle, 180) != 0;
    return turns ? std::array{width, height} : std::array{height, width};
  }
  return expanded_size(inverse_of(affine, from_middle(rotation.center, height, width)), height,
                       width);
}

}  // namespace internal

Image affine_image(const Image& image, const Affine& affine, const Warping& warping) {
  check_warping("affine", image, warping);
  check_finite("affine", {affine.angle, affine.translate[0], affine.translate[1], affine.shear[0],
                          affine.shear[1], affine.scale});
  check(affine.scale > 0, "affine: got scale ", affine.scale, ", expected more than 0");
  const auto center = internal::from_middle(affine.center, image.height, image.width);
  return apply_affine("affine", image, internal::inverse_of(affine, center),
                      {image.height, image.width}, warping);
}

Image rotate_image(const Image& image, const Rotation& rotation, const Warping& warping) {
  check_warping("rotate", image, warping);
  check_finite("rotate", {rotation.angle});
  const Affine affine = internal::affine_of(rotation);
  if (!rotation.center) {
    const bool turns = rotation.expand || image.height == image.width;
    if (affine.angle == 0) {
      return image;
    }
    if (affine.angle == -180) {
      return vertical_flip_image(flip_image(image));
    }
    if (turns && (affine.angle == -90 || affine.angle == -270)) {
      return quarter_turn(image, affine.angle == -270);
    }
  }
  const auto center = internal::from_middle(rotation.center, image.height, image.width);
  const AffineMatrix inverse = internal::inverse_of(affine, center);
  return apply_affine("rotate", image, inverse,
                      internal::rotated_size(rotation, image.height, image.width), warping);
}

std::array<double, 8> perspective_coefficients(const Corners& start, const Corners& end) {
  // Eight equations, by elimination with the largest pivot.
  double a[8][9] = {};
  for (size_t i = 0; i < 4; ++i) {
    const double x = end[i][0], y = end[i][1];
    for (size_t axis = 0; axis < 2; ++axis) {
      double* row = a[2 * i + axis];
      const double to = start[i][axis];
      row[3 * axis] = x;
      row[3 * axis + 1] = y;
      row[3 * axis + 2] = 1;
      row[6] = -to * x;
      row[7] = -to * y;
      row[8] = to;
    }
  }
  for (size_t k = 0; k < 8; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < 8; ++i) {
      pivot = std::abs(a[i][k]) > std::abs(a[pivot][k]) ? i : pivot;
    }
    std::swap_ranges(a[k], a[k] + 9, a[pivot]);
    check(std::abs(a[k][k]) > 1e-9,
          "perspective: three of the corners lie on one line, expected four corners of a shape "
          "with an area");
    for (size_t i = 0; i < 8; ++i) {
      const double share = i == k ? 0 : a[i][k] / a[k][k];
      for (size_t j = k; j < 9; ++j) {
        a[i][j] -= share * a[k][j];
      }
    }
  }
  std::array<double, 8> out;
  for (size_t k = 0; k < 8; ++k) {
    out[k] = static_cast<double>(static_cast<float>(a[k][8] / a[k][k]));  // as torchvision rounds
  }
  return out;
}

Image perspective_image(const Image& image, const std::array<double, 8>& coefficients,
                        const Warping& warping) {
  check_warping("perspective", image, warping);
  check(std::all_of(coefficients.begin(), coefficients.end(),
                    [](double v) { return std::isfinite(v); }),
        "perspective: got a number that is not finite");
  const std::vector<float> fill =
      warping.fill.empty() ? std::vector<float>()
                           : internal::fill_for("perspective", warping.fill, image.channels);
  Image out = internal::same_shape(image);
  kernels::WarpBytes warp = warp_of(image, out, warping, fill);
  warp.center_x = warp.center_y = -0.5f;
  warp.projective = true;
  float m[8];
  std::transform(coefficients.begin(), coefficients.end(), m,
                 [](double v) { return static_cast<float>(v); });
  set_rows(warp, m, image.height, image.width);
  warp.matrix[6] = m[6];
  warp.matrix[7] = m[7];
  warp.matrix[8] = 1;
  kernels::warp_bytes_best(warp);
  return out;
}

}  // namespace binade::data
