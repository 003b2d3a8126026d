#include <binade/data/transforms.h>
#include <binade/data/window/geometry_internal.h>
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

// The mask of an image that is changed by a window: class ids are not mixed.
void apply_to_mask(const Window& window, Image& mask) {
  mask = crop_image(mask, window.top, window.left, window.height, window.width);
  if (window.out_height != 0 &&
      (window.out_height != window.height || window.out_width != window.width)) {
    mask = resize_nearest(mask, window.out_height, window.out_width);
  }
}

// All of an image.
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

Transform::Transform(Function image, Function mask) {
  if (image) {
    steps_.push_back({std::move(image), std::move(mask), nullptr});
  }
}

Transform window(Transform::WindowFunction choose) {
  Transform transform;
  if (choose) {
    transform.steps_.push_back({nullptr, nullptr, std::move(choose)});
  }
  return transform;
}

void Transform::apply(Image& image, std::span<std::pair<std::string, Image>> masks,
                      philox::Stream& random) const {
  for (const auto& [name, mask] : masks) {
    check(mask.height == image.height && mask.width == image.width, "transform: the mask '", name,
          "' is ", mask.height, " x ", mask.width, ", expected ", image.height, " x ", image.width,
          ", the size of its image");
  }
  apply_from(0, image, masks, random);
}

void Transform::apply_from(size_t first_step, Image& image,
                           std::span<std::pair<std::string, Image>> masks,
                           philox::Stream& random) const {
  for (size_t i = first_step; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    const philox::Stream before = random;
    if (step.window) {
      const Window chosen = step.window(image.height, image.width, random);
      Image out;
      internal::Geometry(chosen, image.height, image.width).apply(internal::view_of(image), out);
      image = std::move(out);
      for (auto& [name, mask] : masks) {
        apply_to_mask(chosen, mask);
      }
      continue;
    }
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
  return {flip, flip};
}

Transform random_resized_crop(int height, int width, float min_area, Interpolation interpolation) {
  check_target("random_resized_crop", height, width);
  check(min_area > 0 && min_area <= 1, "random_resized_crop: got min_area ", min_area,
        ", expected more than 0 and at most 1");
  return window([=](int image_height, int image_width, philox::Stream& random) -> Window {
    // Aspect between 3/4 and 4/3, as often wide as tall.
    const double area =
        (min_area + (1 - min_area) * double(random.next_uniform())) * image_height * image_width;
    double aspect = 1 + double(random.next_uniform()) / 3;
    aspect = (random.next() & 1) != 0 ? aspect : 1 / aspect;
    const int crop_width =
        std::clamp(static_cast<int>(std::sqrt(area * aspect) + 0.5), 1, image_width);
    const int crop_height =
        std::clamp(static_cast<int>(std::sqrt(area / aspect) + 0.5), 1, image_height);
    const int top = draw(random, image_height - crop_height);
    const int left = draw(random, image_width - crop_width);
    return {top, left, crop_height, crop_width, height, width, interpolation};
  });
}

Transform resize(int height, int width, Interpolation interpolation) {
  check_target("resize", height, width);
  return window([=](int image_height, int image_width, philox::Stream&) {
    Window all = whole(image_height, image_width);
    all.out_height = height;
    all.out_width = width;
    all.interpolation = interpolation;
    return all;
  });
}

Transform resize_short_side(int side, Interpolation interpolation) {
  check_target("resize_short_side", side, side);
  return window([=](int image_height, int image_width, philox::Stream&) {
    const int64_t shorter = std::min(image_height, image_width);
    const auto scaled = [&](int64_t length) {
      constexpr int64_t kMaxSide = 32'768;
      return static_cast<int>(std::min((length * side + shorter / 2) / shorter, kMaxSide));
    };
    Window all = whole(image_height, image_width);
    if (shorter != side) {
      all.out_height = scaled(image_height);
      all.out_width = scaled(image_width);
      all.interpolation = interpolation;
    }
    return all;
  });
}

Transform center_crop(int height, int width) {
  check_target("center_crop", height, width);
  return window([=](int image_height, int image_width, philox::Stream&) -> Window {
    // Rounds down for negative differences too, so that padding is the inverse of cropping.
    const int top = (image_height - height) >> 1, left = (image_width - width) >> 1;
    return {.top = top, .left = left, .height = height, .width = width};
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
