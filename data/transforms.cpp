#include <binade/data/augment/image_ops.h>
#include <binade/data/transforms.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/image/normalize_bytes_isa_internal.h>
#include <binade/kernels/image/resample_bytes_isa_internal.h>

#include <algorithm>
#include <cmath>

namespace binade::data {
namespace {

void check_target(const char* op, int height, int width) {
  constexpr int kMaxSide = 32'768;
  check(height >= 1 && height <= kMaxSide && width >= 1 && width <= kMaxSide, op, ": got size ",
        height, " x ", width, ", expected sides of 1 to ", kMaxSide);
}

// Uniform integer of [0, range].
int draw(philox::Stream& random, int range) {
  return static_cast<int>(random.next_below(static_cast<uint32_t>(range) + 1));
}

// The index of the pixel of `from` nearest to the middle of pixel i of `to`.
int nearest(int i, int to, int from) {
  return static_cast<int>((2 * int64_t(i) + 1) * from / (2 * int64_t(to)));
}

// The first pixel of a centred crop that is `spare` pixels smaller than the image. Half a pixel is
// rounded to the even number, and in padding (spare < 0) down, as in torchvision.
int middle(int spare) { return spare >= 0 ? spare / 2 + (spare % 4 == 3 ? 1 : 0) : -(-spare / 2); }

// A window of random area and aspect, without its resize.
Window random_area(int image_height, int image_width, const RandomResizedCropOptions& options,
                   philox::Stream& random) {
  constexpr int kTries = 10;
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * double(random.next_uniform());
  };
  const auto side = [](double length) { return static_cast<int>(std::nearbyint(length)); };
  for (int i = 0; i < kTries; ++i) {
    const double area =
        double(image_height) * image_width * uniform(options.scale[0], options.scale[1]);
    const double aspect = std::exp(uniform(std::log(options.ratio[0]), std::log(options.ratio[1])));
    const int width = side(std::min(std::sqrt(area * aspect), 1e9)),
              height = side(std::min(std::sqrt(area / aspect), 1e9));
    if (width > 0 && width <= image_width && height > 0 && height <= image_height) {
      const int top = draw(random, image_height - height), left = draw(random, image_width - width);
      return {.top = top, .left = left, .height = height, .width = width};
    }
  }
  const double aspect = double(image_width) / image_height;
  Window whole_image{.height = image_height, .width = image_width};
  if (aspect < options.ratio[0]) {
    whole_image.height = std::clamp(side(image_width / options.ratio[0]), 1, image_height);
  } else if (aspect > options.ratio[1]) {
    whole_image.width = std::clamp(side(image_height * options.ratio[1]), 1, image_width);
  }
  whole_image.top = (image_height - whole_image.height) / 2;
  whole_image.left = (image_width - whole_image.width) / 2;
  return whole_image;
}

// A window of the whole image.
Window whole(int height, int width) { return {.height = height, .width = width}; }

constexpr uint64_t kAugmentKey = 0x4155'474D'454E'5431;
constexpr int kIndexBits = 40;

}  // namespace

philox::Stream sample_stream(uint64_t seed, int64_t epoch, int64_t index) {
  check(epoch >= 0 && epoch < int64_t(1) << 23 && index >= 0 && index < int64_t(1) << kIndexBits,
        "sample_stream: got epoch ", epoch, " and index ", index,
        ", expected less than 2^23 and 2^40");
  return {seed ^ kAugmentKey,
          static_cast<uint64_t>(epoch) << kIndexBits | static_cast<uint64_t>(index)};
}

Image crop_image(const Image& image, int top, int left, int height, int width) {
  Image out = make_image(height, width, image.channels);
  const int first = std::max(0, -left), last = std::min(width, image.width - left);
  for (int y = std::max(0, -top); y < std::min(height, image.height - top) && first < last; ++y) {
    const uint8_t* from = image.row(top + y) + ptrdiff_t(left + first) * image.channels;
    std::copy_n(from, ptrdiff_t(last - first) * image.channels,
                out.row(y) + ptrdiff_t(first) * image.channels);
  }
  return out;
}

Image flip_image(const Image& image) {
  constexpr int kMaxChannels = 4;
  Image out = image;
  if (image.channels <= kMaxChannels && image.channels > 0) {
    kernels::flip_rows_best(
        kernels::FlipRows{out.pixels.data(), image.height, image.width, image.channels});
    return out;
  }
  for (int y = 0; y < image.height; ++y) {
    const uint8_t* from = image.row(y) + ptrdiff_t(image.width) * image.channels;
    uint8_t* to = out.row(y);
    for (int x = 0; x < image.width; ++x) {
      from -= image.channels;
      to = std::copy_n(from, image.channels, to);
    }
  }
  return out;
}

Image resize_nearest(const Image& image, int height, int width) {
  check_target("resize_nearest", height, width);
  Image out = make_image(height, width, image.channels);
  for (int y = 0; y < height; ++y) {
    const uint8_t* row = image.row(nearest(y, height, image.height));
    uint8_t* to = out.row(y);
    for (int x = 0; x < width; ++x) {
      to = std::copy_n(row + ptrdiff_t(nearest(x, width, image.width)) * image.channels,
                       image.channels, to);
    }
  }
  return out;
}

Transform random_crop(int height, int width, int padding) {
  check_target("random_crop", height, width);
  check(padding >= 0 && padding <= 1024, "random_crop: got padding ", padding,
        ", expected 0 to 1024");
  return window([=](int image_height, int image_width, philox::Stream& random) -> Window {
    const int rows = image_height + 2 * padding - height,
              columns = image_width + 2 * padding - width;
    check(rows >= 0 && columns >= 0, "random_crop: got an image of ", image_height, " x ",
          image_width, " and padding ", padding, ", expected at least ", height, " x ", width);
    const int top = draw(random, rows) - padding, left = draw(random, columns) - padding;
    return {.top = top, .left = left, .height = height, .width = width};
  });
}

Transform random_horizontal_flip(float probability) {
  check(probability >= 0 && probability <= 1, "random_horizontal_flip: got probability ",
        probability, ", expected 0 to 1");
  const auto flip = [=](Image& image, philox::Stream& random) {
    if (random.next_uniform() < probability) {
      image = flip_image(image);
    }
  };
  return {flip, flip, [=](Boxes& boxes, philox::Stream& random) {
            if (random.next_uniform() < probability) {
              horizontal_flip_boxes(boxes);
            }
          }};
}

Transform random_resized_crop(int height, int width, float min_area, Interpolation interpolation) {
  check(min_area > 0 && min_area <= 1, "random_resized_crop: got min_area ", min_area,
        ", expected more than 0 and at most 1");
  return random_resized_crop(height, width,
                             {.scale = {double{min_area}, 1.0}, .interpolation = interpolation});
}

Transform random_resized_crop(int height, int width, const RandomResizedCropOptions& options) {
  check_target("random_resized_crop", height, width);
  const auto [low, high] = options.scale;
  const auto [narrow, wide] = options.ratio;
  check(low > 0 && low <= high && high <= 1, "random_resized_crop: got scale ", low, " to ", high,
        ", expected more than 0, rising, and at most 1");
  check(narrow > 0 && narrow <= wide && std::isfinite(wide), "random_resized_crop: got ratio ",
        narrow, " to ", wide, ", expected more than 0 and rising");
  return window([=](int image_height, int image_width, philox::Stream& random) -> Window {
    Window chosen = random_area(image_height, image_width, options, random);
    chosen.out_height = height;
    chosen.out_width = width;
    chosen.interpolation = options.interpolation;
    chosen.antialias = options.antialias;
    return chosen;
  });
}

Transform resize(int height, int width, Interpolation interpolation, bool antialias) {
  check_target("resize", height, width);
  return window([=](int image_height, int image_width, philox::Stream&) {
    Window all = whole(image_height, image_width);
    all.out_height = height;
    all.out_width = width;
    all.interpolation = interpolation;
    all.antialias = antialias;
    return all;
  });
}

Transform resize_short_side(int side, Interpolation interpolation, int max_size, bool antialias) {
  check_target("resize_short_side", side, side);
  check(max_size == 0 || max_size > side, "resize_short_side: got max_size ", max_size,
        ", expected more than the side, ", side, ", or 0 for none");
  return window([=](int image_height, int image_width, philox::Stream&) {
    constexpr int64_t kMaxSide = 32'768;
    const int64_t shorter = std::min(image_height, image_width),
                  longer = std::max(image_height, image_width);
    int64_t new_short = side, new_long = std::min(side * longer / shorter, kMaxSide);
    if (max_size > 0 && new_long > max_size) {
      new_short = std::max<int64_t>(int64_t{max_size} * new_short / new_long, 1);
      new_long = max_size;
    }
    Window all = whole(image_height, image_width);
    if (new_short != shorter || new_long != longer) {
      const bool tall = image_height >= image_width;
      all.out_height = static_cast<int>(tall ? new_long : new_short);
      all.out_width = static_cast<int>(tall ? new_short : new_long);
      all.interpolation = interpolation;
      all.antialias = antialias;
    }
    return all;
  });
}

Transform center_crop(int height, int width) {
  check_target("center_crop", height, width);
  return window([=](int image_height, int image_width, philox::Stream&) -> Window {
    return {.top = middle(image_height - height),
            .left = middle(image_width - width),
            .height = height,
            .width = width};
  });
}

Normalizer::Normalizer(int channels, std::span<const float> mean, std::span<const float> deviation)
    : channels_(channels) {
  check(channels >= 1 && channels <= 4, "normalize: got ", channels, " channels, expected 1 to 4");
  check(mean.empty() || mean.size() == static_cast<size_t>(channels), "normalize: got ",
        mean.size(), " means, expected ", channels);
  check(deviation.empty() || deviation.size() == static_cast<size_t>(channels), "normalize: got ",
        deviation.size(), " deviations, expected ", channels);
  for (size_t i = 0; i < size_t{kernels::kNormalizePixels} * static_cast<size_t>(channels); ++i) {
    const size_t c = i % static_cast<size_t>(channels);
    const double m = mean.empty() ? 0 : double(mean[c]),
                 d = deviation.empty() ? 1 : double(deviation[c]);
    check(std::isfinite(m) && std::isfinite(d) && d > 0, "normalize: got mean ", m,
          " and deviation ", d, ", expected finite numbers and a deviation > 0");
    scale_.push_back(static_cast<float>(1 / (255 * d)));
    shift_.push_back(static_cast<float>(-m / d));
  }
}

void Normalizer::apply(const uint8_t* x, float* y, int64_t pixels) const {
  apply(x, y, DType::f32, pixels);
}

void Normalizer::apply(const uint8_t* x, void* y, DType dtype, int64_t pixels,
                       int64_t plane) const {
  check(dtype == DType::f32 || is_half(dtype), "normalize: got ", dtype,
        ", expected f32, f16 or bf16");
  kernels::normalize_bytes_best(kernels::NormalizeBytes{.x = x,
                                                        .y = static_cast<std::byte*>(y),
                                                        .dtype = dtype,
                                                        .pixels = pixels,
                                                        .channels = channels_,
                                                        .scale = scale_.data(),
                                                        .shift = shift_.data(),
                                                        .plane = plane});
}

}  // namespace binade::data
