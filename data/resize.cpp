// resize_image(): the resampler of kernels/image on an Image.
#include <binade/data/transforms.h>
#include <binade/data/window/geometry_internal.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <cmath>

namespace binade::data {
namespace {

// The source pixels that contribute to one pixel of the result, with their weights.
struct Taps {
  int at[4];
  float weight[4];
};

std::vector<Taps> taps_of(int in, int out, bool cubic) {
  constexpr double kA = -0.75;  // constant of Keys' cubic in torch without antialiasing
  const auto near = [](double d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; };
  const auto far = [](double d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  std::vector<Taps> taps(static_cast<size_t>(out));
  for (int i = 0; i < out; ++i) {
    double place = (i + 0.5) * in / out - 0.5;
    place = cubic ? place : std::max(place, 0.0);
    const double first = std::floor(place), t = place - first;
    Taps& tap = taps[static_cast<size_t>(i)];
    const double weights[4] = {cubic ? far(t + 1) : 0, cubic ? near(t) : 1 - t,
                               cubic ? near(1 - t) : t, cubic ? far(2 - t) : 0};
    for (int k = 0; k < 4; ++k) {
      tap.at[k] = std::clamp(static_cast<int>(first) - 1 + k, 0, in - 1);
      tap.weight[k] = static_cast<float>(weights[k]);
    }
  }
  return taps;
}

uint8_t rounded(float value) {
  return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f);
}

// Resizes columns first, then rows; each step rounds to bytes.
Image resize_by_taps(const Image& image, int height, int width, bool cubic) {
  const std::vector<Taps> rows = taps_of(image.height, height, cubic),
                          columns = taps_of(image.width, width, cubic);
  const auto channels = static_cast<size_t>(image.channels);
  const size_t row_values = static_cast<size_t>(width) * channels;
  std::vector<uint8_t> wide(static_cast<size_t>(image.height) * row_values);
  for (int y = 0; y < image.height; ++y) {
    uint8_t* to = wide.data() + static_cast<size_t>(y) * row_values;
    for (const Taps& tap : columns) {
      for (size_t c = 0; c < channels; ++c) {
        const uint8_t* x = image.row(y) + c;
        float sum = 0;
        for (int k = 0; k < 4; ++k) {
          sum += tap.weight[k] * static_cast<float>(x[ptrdiff_t{tap.at[k]} * image.channels]);
        }
        *to++ = rounded(sum);
      }
    }
  }
  Image out = make_image(height, width, image.channels);
  for (int y = 0; y < height; ++y) {
    const Taps& tap = rows[static_cast<size_t>(y)];
    uint8_t* to = out.row(y);
    for (size_t i = 0; i < row_values; ++i) {
      float sum = 0;
      for (int k = 0; k < 4; ++k) {
        sum += tap.weight[k] *
               static_cast<float>(wide[static_cast<size_t>(tap.at[k]) * row_values + i]);
      }
      to[i] = rounded(sum);
    }
  }
  return out;
}

}  // namespace

namespace internal {

Image resize_plain(const Image& image, int height, int width, Interpolation interpolation) {
  if (interpolation == Interpolation::nearest_exact) {
    return resize_nearest(image, height, width);
  }
  if (interpolation != Interpolation::nearest) {
    return resize_by_taps(image, height, width, interpolation == Interpolation::bicubic);
  }
  // Positions are computed in single precision, as in torch.
  const auto place = [](int i, int in, int out) {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    return std::min(static_cast<int>(static_cast<float>(i) * scale), in - 1);
  };
  Image out = make_image(height, width, image.channels);
  for (int y = 0; y < height; ++y) {
    const uint8_t* row = image.row(place(y, image.height, height));
    uint8_t* to = out.row(y);
    for (int x = 0; x < width; ++x) {
      to = std::copy_n(row + ptrdiff_t{place(x, image.width, width)} * image.channels,
                       image.channels, to);
    }
  }
  return out;
}

}  // namespace internal

Image resize_image(const Image& image, int height, int width, Interpolation interpolation,
                   bool antialias) {
  check(height >= 1 && width >= 1 && image.height >= 1 && image.width >= 1, "resize: got ",
        image.height, " x ", image.width, " to ", height, " x ", width,
        ", expected sides of at least 1");
  if (image.height == height && image.width == width) {
    return image;
  }
  const Window window{.height = image.height,
                      .width = image.width,
                      .out_height = height,
                      .out_width = width,
                      .interpolation = interpolation,
                      .antialias = antialias};
  Image out;
  internal::Geometry(window, image.height, image.width).apply(internal::view_of(image), out);
  return out;
}

}  // namespace binade::data
