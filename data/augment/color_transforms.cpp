// Transforms that change values of pixels and leave every pixel in its place.
#include <binade/data/augment/augment.h>
#include <binade/data/augment/draws_internal.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <cmath>

namespace binade::data {
namespace {

using internal::check_probability;
using internal::draw_uniform;

// Applies change(image) with probability p.
template <class Change>
Transform with_probability(const char* op, double p, Change change) {
  check_probability(op, p);
  return pixelwise([=](Image& image, philox::Stream& random) {
    if (draw_uniform(random, 0, 1) < p) {
      image = change(image);
    }
  });
}

void check_factors(const char* name, const std::optional<Range>& range, double low, double high) {
  check(!range || ((*range)[0] >= low && (*range)[0] <= (*range)[1] && (*range)[1] <= high),
        "color_jitter: got ", name, " ", range ? (*range)[0] : 0, " to ", range ? (*range)[1] : 0,
        ", expected numbers that rise, from ", low, " to ", high);
}

// A range of factors around 1, or none if nothing changes.
std::optional<Range> around_one(const char* name, double by) {
  check(by >= 0, "color_jitter: got ", name, " ", by, ", expected at least 0");
  return by == 0 ? std::nullopt : std::optional<Range>({std::max(0.0, 1 - by), 1 + by});
}

// The rectangle to erase; it has no rows if nothing is erased.
Window erased_box(const Image& image, const RandomErasingOptions& o, philox::Stream& random) {
  constexpr int kTries = 10;
  const double pixels = static_cast<double>(image.height) * image.width;
  for (int i = 0; i < kTries; ++i) {
    const double area = pixels * draw_uniform(random, o.scale[0], o.scale[1]);
    const double aspect =
        std::exp(draw_uniform(random, std::log(o.ratio[0]), std::log(o.ratio[1])));
    const double height = std::nearbyint(std::sqrt(area * aspect)),
                 width = std::nearbyint(std::sqrt(area / aspect));
    if (height < image.height && width < image.width) {
      const int rows = static_cast<int>(height), columns = static_cast<int>(width);
      const auto place = [&](int spare) {
        return static_cast<int>(random.next_below(static_cast<uint32_t>(spare) + 1));
      };
      const int top = place(image.height - rows), left = place(image.width - columns);
      return {.top = top, .left = left, .height = rows, .width = columns};
    }
  }
  return {};
}

void fill_with_noise(Image& image, const Window& box, philox::Stream& random) {
  for (int y = box.top; y < box.top + box.height; ++y) {
    uint8_t* to = image.row(y) + ptrdiff_t{box.left} * image.channels;
    std::generate_n(to, ptrdiff_t{box.width} * image.channels,
                    [&] { return static_cast<uint8_t>(random.next() >> 24); });
  }
}

}  // namespace

Transform color_jitter(double brightness, double contrast, double saturation, double hue) {
  check(hue >= 0 && hue <= 0.5, "color_jitter: got hue ", hue, ", expected 0 to 0.5");
  return color_jitter({.brightness = around_one("brightness", brightness),
                       .contrast = around_one("contrast", contrast),
                       .saturation = around_one("saturation", saturation),
                       .hue = hue == 0 ? std::nullopt : std::optional<Range>({-hue, hue})});
}

Transform color_jitter(const ColorJitterOptions& o) {
  constexpr double kMost = 1e6;
  check_factors("brightness", o.brightness, 0, kMost);
  check_factors("contrast", o.contrast, 0, kMost);
  check_factors("saturation", o.saturation, 0, kMost);
  check_factors("hue", o.hue, -0.5, 0.5);
  return pixelwise([=](Image& image, philox::Stream& random) {
    const std::vector<size_t> order = internal::draw_permutation(random, 4);
    const std::optional<Range>* ranges[] = {&o.brightness, &o.contrast, &o.saturation, &o.hue};
    double factor[4] = {};
    for (size_t i = 0; i < 4; ++i) {
      factor[i] = *ranges[i] ? draw_uniform(random, (**ranges[i])[0], (**ranges[i])[1]) : 0;
    }
    constexpr Image (*kChange[])(const Image&, double) = {adjust_brightness, adjust_contrast,
                                                          adjust_saturation, adjust_hue};
    for (const size_t i : order) {
      if (*ranges[i]) {
        image = kChange[i](image, factor[i]);
      }
    }
  });
}

Transform grayscale(int num_output_channels) {
  check(num_output_channels == 1 || num_output_channels == 3, "grayscale: got num_output_channels ",
        num_output_channels, ", expected 1 or 3");
  return pixelwise(
      [=](Image& image, philox::Stream&) { image = rgb_to_grayscale(image, num_output_channels); });
}

Transform random_grayscale(double p) {
  return with_probability("random_grayscale", p, [](const Image& image) {
    return rgb_to_grayscale(image, image.channels);
  });
}

Transform gaussian_blur(int kernel_size, Range sigma) {
  check(kernel_size >= 1 && kernel_size % 2 == 1, "gaussian_blur: got kernel_size ", kernel_size,
        ", expected an odd number of pixels");
  check(sigma[0] > 0 && sigma[0] <= sigma[1] && std::isfinite(sigma[1]),
        "gaussian_blur: got sigma ", sigma[0], " to ", sigma[1],
        ", expected more than 0 and rising");
  return pixelwise([=](Image& image, philox::Stream& random) {
    const double drawn = draw_uniform(random, sigma[0], sigma[1]);
    image = gaussian_blur_image(image, {kernel_size, kernel_size, drawn, drawn});
  });
}

Transform random_invert(double p) { return with_probability("random_invert", p, invert_image); }

Transform random_posterize(int bits, double p) {
  check(bits >= 0 && bits <= 8, "random_posterize: got bits ", bits, ", expected 0 to 8");
  return with_probability("random_posterize", p,
                          [=](const Image& image) { return posterize_image(image, bits); });
}

Transform random_solarize(double threshold, double p) {
  check(threshold <= 255, "random_solarize: got threshold ", threshold, ", expected at most 255");
  return with_probability("random_solarize", p,
                          [=](const Image& image) { return solarize_image(image, threshold); });
}

Transform random_adjust_sharpness(double factor, double p) {
  check(std::isfinite(factor) && factor >= 0, "random_adjust_sharpness: got factor ", factor,
        ", expected at least 0");
  return with_probability("random_adjust_sharpness", p,
                          [=](const Image& image) { return adjust_sharpness(image, factor); });
}

Transform random_autocontrast(double p) {
  return with_probability("random_autocontrast", p, autocontrast_image);
}

Transform random_equalize(double p) {
  return with_probability("random_equalize", p, equalize_image);
}

Transform random_erasing(const RandomErasingOptions& o) {
  check_probability("random_erasing", o.p);
  check(o.scale[0] >= 0 && o.scale[0] <= o.scale[1] && o.scale[1] <= 1,
        "random_erasing: got scale ", o.scale[0], " to ", o.scale[1],
        ", expected 0 to 1 and rising");
  check(o.ratio[0] > 0 && o.ratio[0] <= o.ratio[1] && std::isfinite(o.ratio[1]),
        "random_erasing: got ratio ", o.ratio[0], " to ", o.ratio[1],
        ", expected more than 0 and rising");
  return pixelwise([=](Image& image, philox::Stream& random) {
    if (!(draw_uniform(random, 0, 1) < o.p)) {
      return;
    }
    const Window box = erased_box(image, o, random);
    if (o.random_values) {
      fill_with_noise(image, box, random);
    } else if (box.height > 0) {
      image = erase_image(image, box, o.value);
    }
  });
}

}  // namespace binade::data
