// Colours and values of pixels. Where torchvision computes in single precision and truncates, these
// functions do the same, in the same order.
#include <binade/data/augment/image_ops_internal.h>
#include <binade/kernels/image/augment_bytes_isa_internal.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace binade::data {
namespace {

constexpr size_t kLevels = 256;
using Table = std::array<uint8_t, kLevels>;

uint8_t truncated(float value) { return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f)); }

template <class F>
Table table_of(F value) {
  Table table;
  for (size_t i = 0; i < kLevels; ++i) {
    table[i] = value(i);
  }
  return table;
}

// One table for all channels, or one for each.
Image look_up(const Image& image, std::span<const uint8_t> table) {
  Image out = internal::same_shape(image);
  kernels::look_up_bytes_best(kernels::LookUpBytes{.x = image.pixels.data(),
                                                   .y = out.pixels.data(),
                                                   .pixels = internal::pixel_count(image),
                                                   .channels = image.channels,
                                                   .table = table.data(),
                                                   .one_table = table.size() == kLevels});
  return out;
}

void check_colours(const char* op, const Image& image) {
  check(image.channels == 1 || image.channels == 3, op, ": got an image of ", image.channels,
        " channels, expected 1 or 3");
}

void check_factor(const char* op, double factor) {
  check(std::isfinite(factor) && factor >= 0, op, ": got factor ", factor,
        ", expected a number of at least 0");
}

// The mean of the grey picture.
float mean_grey(const Image& image) {
  const int64_t pixels = internal::pixel_count(image);
  const Image grey = image.channels == 3 ? rgb_to_grayscale(image) : Image();
  const std::vector<uint8_t>& values = image.channels == 3 ? grey.pixels : image.pixels;
  const int64_t sum = std::accumulate(values.begin(), values.end(), int64_t{0});
  return static_cast<float>(static_cast<double>(sum) / static_cast<double>(pixels));
}

using Histogram = std::array<int64_t, kLevels>;

Histogram histogram_of(const Image& image, int channel) {
  Histogram count{};
  for (size_t i = static_cast<size_t>(channel); i < image.pixels.size();
       i += static_cast<size_t>(image.channels)) {
    ++count[image.pixels[i]];
  }
  return count;
}

Table equalizing(const Histogram& count) {
  const auto last = std::find_if(count.rbegin(), count.rend(), [](int64_t n) { return n != 0; });
  const int64_t pixels = std::accumulate(count.begin(), count.end(), int64_t{0});
  const int64_t step = (pixels - *last) / 255;
  int64_t below = step / 2;
  return table_of([&](size_t i) {
    if (step == 0) {
      return static_cast<uint8_t>(i);
    }
    const int64_t level = below / step;
    below += count[i];
    return static_cast<uint8_t>(std::min<int64_t>(level, 255));
  });
}

Table stretching(const Histogram& count) {
  const auto used = [](int64_t n) { return n != 0; };
  const auto low =
      static_cast<float>(std::find_if(count.begin(), count.end(), used) - count.begin());
  const auto high =
      static_cast<float>(count.rend() - 1 - std::find_if(count.rbegin(), count.rend(), used));
  if (low == high) {
    return table_of([](size_t i) { return static_cast<uint8_t>(i); });
  }
  const float scale = (high - low) * static_cast<float>(1.0 / 255.0);
  return table_of([&](size_t i) { return truncated((static_cast<float>(i) - low) / scale); });
}

template <class F>
Image by_histogram(const char* op, const Image& image, F table_for) {
  check_colours(op, image);
  std::vector<uint8_t> tables;
  for (int c = 0; c < image.channels; ++c) {
    const Table table = table_for(histogram_of(image, c));
    tables.insert(tables.end(), table.begin(), table.end());
  }
  return look_up(image, tables);
}

}  // namespace

namespace internal {

Image same_shape(const Image& image) {
  return make_image(image.height, image.width, image.channels);
}

int64_t pixel_count(const Image& image) { return int64_t{image.height} * image.width; }

}  // namespace internal

Image adjust_brightness(const Image& image, double factor) {
  check_colours("adjust_brightness", image);
  check_factor("adjust_brightness", factor);
  const auto f = static_cast<float>(factor);
  return look_up(image, table_of([&](size_t i) { return truncated(static_cast<float>(i) * f); }));
}

Image adjust_contrast(const Image& image, double factor) {
  check_colours("adjust_contrast", image);
  check_factor("adjust_contrast", factor);
  const auto f = static_cast<float>(factor);
  const float mean = mean_grey(image), rest = static_cast<float>(1 - factor);
  return look_up(image, table_of([&](size_t i) {
                   return truncated(std::fma(mean, rest, static_cast<float>(i) * f));
                 }));
}

Image adjust_saturation(const Image& image, double factor) {
  check_colours("adjust_saturation", image);
  check_factor("adjust_saturation", factor);
  if (image.channels == 1) {
    return image;
  }
  Image out = internal::same_shape(image);
  kernels::blend_grey_bytes_best(kernels::BlendGreyBytes{image.pixels.data(), out.pixels.data(),
                                                         internal::pixel_count(image),
                                                         static_cast<float>(factor)});
  return out;
}

Image adjust_hue(const Image& image, double factor) {
  check_colours("adjust_hue", image);
  check(factor >= -0.5 && factor <= 0.5, "adjust_hue: got factor ", factor,
        ", expected -0.5 to 0.5");
  if (image.channels == 1) {
    return image;
  }
  Image out = internal::same_shape(image);
  kernels::shift_hue_bytes_best(kernels::ShiftHueBytes{image.pixels.data(), out.pixels.data(),
                                                       internal::pixel_count(image),
                                                       static_cast<float>(factor)});
  return out;
}

Image adjust_sharpness(const Image& image, double factor) {
  check_colours("adjust_sharpness", image);
  check_factor("adjust_sharpness", factor);
  Image out = image;
  if (image.height <= 2 || image.width <= 2) {
    return out;
  }
  const ptrdiff_t c = image.channels;
  for (int y = 1; y + 1 < image.height; ++y) {
    kernels::sharpen_row_best(kernels::SharpenRow{.above = image.row(y - 1) + c,
                                                  .x = image.row(y) + c,
                                                  .below = image.row(y + 1) + c,
                                                  .bytes = (image.width - 2) * c,
                                                  .channels = image.channels,
                                                  .share = static_cast<float>(1 - factor),
                                                  .y = out.row(y) + c});
  }
  return out;
}

Image adjust_gamma(const Image& image, double gamma, double gain) {
  check_factor("adjust_gamma", gamma);
  check(std::isfinite(gain), "adjust_gamma: got gain ", gain, ", expected a finite number");
  return look_up(image, table_of([&](size_t i) {
                   const float x = static_cast<float>(i) * static_cast<float>(1.0 / 255.0);
                   const float y = std::pow(x, static_cast<float>(gamma));
                   const float gained =
                       gain == 1 ? y : std::clamp(y * static_cast<float>(gain), 0.0f, 1.0f);
                   return truncated(gained * 255.999f);
                 }));
}

Image rgb_to_grayscale(const Image& image, int num_output_channels) {
  check_colours("rgb_to_grayscale", image);
  check(num_output_channels == 1 || num_output_channels == 3,
        "rgb_to_grayscale: got num_output_channels ", num_output_channels, ", expected 1 or 3");
  Image grey = image;
  if (image.channels == 3) {
    grey = make_image(image.height, image.width, 1);
    kernels::grey_bytes_best(
        kernels::GreyBytes{image.pixels.data(), grey.pixels.data(), internal::pixel_count(image)});
  }
  if (num_output_channels == 1) {
    return grey;
  }
  Image out = make_image(image.height, image.width, 3);
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    std::fill_n(out.pixels.begin() + static_cast<ptrdiff_t>(3 * i), 3, grey.pixels[i]);
  }
  return out;
}

Image invert_image(const Image& image) {
  return look_up(image, table_of([](size_t i) { return static_cast<uint8_t>(255 - i); }));
}

Image posterize_image(const Image& image, int bits) {
  check(bits >= 0 && bits <= 8, "posterize: got bits ", bits, ", expected 0 to 8");
  const auto mask = static_cast<uint8_t>(0xff00 >> bits);
  return look_up(image, table_of([&](size_t i) { return static_cast<uint8_t>(i & mask); }));
}

Image solarize_image(const Image& image, double threshold) {
  check(threshold <= 255, "solarize: got threshold ", threshold, ", expected at most 255");
  return look_up(image, table_of([&](size_t i) {
                   return static_cast<uint8_t>(static_cast<double>(i) >= threshold ? 255 - i : i);
                 }));
}

Image autocontrast_image(const Image& image) {
  return by_histogram("autocontrast", image, stretching);
}

Image equalize_image(const Image& image) { return by_histogram("equalize", image, equalizing); }

}  // namespace binade::data
