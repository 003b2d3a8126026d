// Antialiased bilinear resampling: a triangle filter, as wide as the scale when shrinking, for rows
// and columns separately. Weights are fixed-point integers, so the result is the same on every
// machine.
#include <binade/data/transforms.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <cmath>

namespace binade::data {
namespace {

constexpr int kFractionBits = 22;  // 255 * 2^22 fits in 31 bits

struct Weights {
  int taps = 0;                // weights per output, the unused ones 0
  std::vector<int> first;      // [out] first input of each output
  std::vector<int> count;      // [out] inputs used
  std::vector<int32_t> value;  // [out, taps], each row sums to about 2^22
};

Weights triangle_weights(int in, int out) {
  const double scale = double(in) / out, width = std::max(scale, 1.0);
  Weights weights;
  weights.taps = static_cast<int>(std::ceil(width)) * 2 + 1;
  weights.value.resize(static_cast<size_t>(out) * weights.taps);
  std::vector<double> row(static_cast<size_t>(weights.taps));
  for (int i = 0; i < out; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - width + 0.5), 0);
    const int last = std::min(static_cast<int>(center + width + 0.5), in);
    double sum = 0;
    for (int k = 0; k < last - first; ++k) {
      row[k] = std::max(0.0, 1 - std::abs((first + k + 0.5 - center) / width));
      sum += row[k];
    }
    for (int k = 0; k < last - first; ++k) {
      weights.value[static_cast<size_t>(i) * weights.taps + k] =
          static_cast<int32_t>(row[k] / sum * (1 << kFractionBits) + 0.5);
    }
    weights.first.push_back(first);
    weights.count.push_back(last - first);
  }
  return weights;
}

uint8_t round_pixel(int64_t sum) {
  return static_cast<uint8_t>(
      std::clamp<int64_t>((sum + (1 << (kFractionBits - 1))) >> kFractionBits, 0, 255));
}

Image resize_width(const Image& image, int width) {
  const Weights weights = triangle_weights(image.width, width);
  Image out = make_image(image.height, width, image.channels);
  for (int y = 0; y < image.height; ++y) {
    const uint8_t* row = image.row(y);
    uint8_t* to = out.row(y);
    for (int x = 0; x < width; ++x) {
      const int32_t* weight = &weights.value[static_cast<size_t>(x) * weights.taps];
      const uint8_t* from = row + ptrdiff_t(weights.first[x]) * image.channels;
      for (int c = 0; c < image.channels; ++c) {
        int64_t sum = 0;
        for (int k = 0; k < weights.count[x]; ++k) {
          sum += int64_t(weight[k]) * from[ptrdiff_t(k) * image.channels + c];
        }
        *to++ = round_pixel(sum);
      }
    }
  }
  return out;
}

Image resize_height(const Image& image, int height) {
  const Weights weights = triangle_weights(image.height, height);
  Image out = make_image(height, image.width, image.channels);
  const size_t row_bytes = static_cast<size_t>(image.width) * image.channels;
  std::vector<int64_t> sums(row_bytes);
  for (int y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), 0);
    for (int k = 0; k < weights.count[y]; ++k) {
      const int64_t weight = weights.value[static_cast<size_t>(y) * weights.taps + k];
      const uint8_t* row = image.row(weights.first[y] + k);
      for (size_t i = 0; i < row_bytes; ++i) {
        sums[i] += weight * row[i];
      }
    }
    std::transform(sums.begin(), sums.end(), out.row(y), round_pixel);
  }
  return out;
}

}  // namespace

Image resize_image(const Image& image, int height, int width) {
  check(height >= 1 && width >= 1 && image.height >= 1 && image.width >= 1, "resize: got ",
        image.height, " x ", image.width, " to ", height, " x ", width,
        ", expected sides of at least 1");
  if (image.width == width) {
    return image.height == height ? image : resize_height(image, height);
  }
  const Image wide = resize_width(image, width);
  return wide.height == height ? wide : resize_height(wide, height);
}

}  // namespace binade::data
