#include <binade/data/transforms.h>
#include <binade/kernels/base/error.h>

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

// A transform that does the same to masks, with another function to resize.
using Resize = Image (*)(const Image&, int, int);
template <class F>
Transform geometric(F f) {
  return {[f](Image& image, philox::Stream& random) { f(image, random, &resize_image); },
          [f](Image& mask, philox::Stream& random) { f(mask, random, &resize_nearest); }};
}

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
  Image out = make_image(image.height, image.width, image.channels);
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

Transform::Transform(Function image, Function mask) {
  if (image) {
    steps_.push_back({std::move(image), std::move(mask)});
  }
}

void Transform::apply(Image& image, std::span<std::pair<std::string, Image>> masks,
                      philox::Stream& random) const {
  for (const auto& [name, mask] : masks) {
    check(mask.height == image.height && mask.width == image.width, "transform: the mask '", name,
          "' is ", mask.height, " x ", mask.width, ", expected ", image.height, " x ", image.width,
          ", the size of its image");
  }
  for (const Step& step : steps_) {
    const philox::Stream before = random;
    step.image(image, random);
    for (auto& [name, mask] : masks) {
      check(step.mask != nullptr,
            "transform: a function of your own does not say what it does to "
            "the mask '",
            name,
            "'; give Transform(image, mask), or pixelwise(image) if it moves no "
            "pixels");
      philox::Stream same = before;
      step.mask(mask, same);
    }
  }
}

Transform sequence(std::vector<Transform> steps) {
  Transform all;
  for (const Transform& transform : steps) {
    all.steps_.insert(all.steps_.end(), transform.steps_.begin(), transform.steps_.end());
  }
  return all;
}

Transform pixelwise(Transform::Function image) {
  return {std::move(image), [](Image&, philox::Stream&) {}};
}

Transform random_crop(int height, int width, int padding) {
  check_target("random_crop", height, width);
  check(padding >= 0 && padding <= 1024, "random_crop: got padding ", padding,
        ", expected 0 to 1024");
  return geometric([=](Image& image, philox::Stream& random, Resize) {
    const int rows = image.height + 2 * padding - height,
              columns = image.width + 2 * padding - width;
    check(rows >= 0 && columns >= 0, "random_crop: got an image of ", image.height, " x ",
          image.width, " and padding ", padding, ", expected at least ", height, " x ", width);
    const int top = draw(random, rows) - padding, left = draw(random, columns) - padding;
    image = crop_image(image, top, left, height, width);
  });
}

Transform random_horizontal_flip(float probability) {
  check(probability >= 0 && probability <= 1, "random_horizontal_flip: got probability ",
        probability, ", expected 0 to 1");
  return geometric([=](Image& image, philox::Stream& random, Resize) {
    if (random.next_uniform() < probability) {
      image = flip_image(image);
    }
  });
}

Transform random_resized_crop(int height, int width, float min_area) {
  check_target("random_resized_crop", height, width);
  check(min_area > 0 && min_area <= 1, "random_resized_crop: got min_area ", min_area,
        ", expected more than 0 and at most 1");
  return geometric([=](Image& image, philox::Stream& random, Resize resized) {
    // Aspect between 3/4 and 4/3, as often wide as tall.
    const double area =
        (min_area + (1 - min_area) * double(random.next_uniform())) * image.height * image.width;
    double aspect = 1 + double(random.next_uniform()) / 3;
    aspect = (random.next() & 1) != 0 ? aspect : 1 / aspect;
    const int crop_width =
        std::clamp(static_cast<int>(std::sqrt(area * aspect) + 0.5), 1, image.width);
    const int crop_height =
        std::clamp(static_cast<int>(std::sqrt(area / aspect) + 0.5), 1, image.height);
    const int top = draw(random, image.height - crop_height);
    const int left = draw(random, image.width - crop_width);
    image = resized(crop_image(image, top, left, crop_height, crop_width), height, width);
  });
}

Transform resize(int height, int width) {
  check_target("resize", height, width);
  return geometric([=](Image& image, philox::Stream&, Resize resized) {
    if (image.height != height || image.width != width) {
      image = resized(image, height, width);
    }
  });
}

Transform resize_short_side(int side) {
  check_target("resize_short_side", side, side);
  return geometric([=](Image& image, philox::Stream&, Resize resized) {
    const int64_t shorter = std::min(image.height, image.width);
    const auto scaled = [&](int64_t length) {
      constexpr int64_t kMaxSide = 32'768;
      return static_cast<int>(std::min((length * side + shorter / 2) / shorter, kMaxSide));
    };
    if (shorter != side) {
      image = resized(image, scaled(image.height), scaled(image.width));
    }
  });
}

Transform center_crop(int height, int width) {
  check_target("center_crop", height, width);
  return geometric([=](Image& image, philox::Stream&, Resize) {
    if (image.height != height || image.width != width) {
      // Rounds down for negative differences too, so that padding is the inverse of cropping.
      const int top = (image.height - height) >> 1, left = (image.width - width) >> 1;
      image = crop_image(image, top, left, height, width);
    }
  });
}

Normalizer::Normalizer(int channels, std::span<const float> mean, std::span<const float> deviation)
    : channels_(channels) {
  check(channels >= 1 && channels <= 4, "normalize: got ", channels, " channels, expected 1 to 4");
  check(mean.empty() || mean.size() == static_cast<size_t>(channels), "normalize: got ",
        mean.size(), " means, expected ", channels);
  check(deviation.empty() || deviation.size() == static_cast<size_t>(channels), "normalize: got ",
        deviation.size(), " deviations, expected ", channels);
  constexpr size_t kLanes = 16;
  for (size_t i = 0; i < kLanes * static_cast<size_t>(channels); ++i) {
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
  const int64_t count = pixels * channels_, period = static_cast<int64_t>(scale_.size());
  const float* scale = scale_.data();
  const float* shift = shift_.data();
  int64_t i = 0;
  for (; i + period <= count; i += period) {
    for (int64_t j = 0; j < period; ++j) {
      y[i + j] = static_cast<float>(x[i + j]) * scale[j] + shift[j];
    }
  }
  for (int64_t j = 0; i < count; ++i, ++j) {
    y[i] = static_cast<float>(x[i]) * scale[j] + shift[j];
  }
}

}  // namespace binade::data
