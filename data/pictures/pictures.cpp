// Conversions are loops on the host: a picture is small, and it comes from a file or goes to one.
#include <binade/core/io/file_system.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/encode.h>
#include <binade/data/pictures/pictures.h>
#include <binade/data/transforms.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace binade::data {
namespace {

constexpr int64_t kMaxPictureSide = 1 << 20;  // the encoders have limits of their own
constexpr int kMaxChannels = 4;               // as the decoder gives them

void check_whole(const char* op, const Image& image) {
  check(image.height > 0 && image.width > 0 && image.channels > 0 && image.channels <= kMaxChannels,
        op, ": got an image of ", image.height, " x ", image.width, " x ", image.channels,
        ", expected at least 1 x 1 pixels of 1 to ", kMaxChannels, " channels");
  check(image.pixels.size() == static_cast<size_t>(image.height) *
                                   static_cast<size_t>(image.width) *
                                   static_cast<size_t>(image.channels),
        op, ": the image has ", image.pixels.size(), " bytes, expected height * width * channels");
}

void check_normalization(const char* op, const Normalization& n, int channels) {
  const auto fits = [channels](const std::vector<float>& values) {
    return values.empty() || values.size() == static_cast<size_t>(channels);
  };
  check(fits(n.mean) && fits(n.deviation), op, ": got ", n.mean.size(), " means and ",
        n.deviation.size(), " deviations, expected one of each for the ", channels,
        " channels of the picture, or none");
  for (const float mean : n.mean) {
    check(std::isfinite(mean), op, ": got a mean of ", mean, ", expected a finite number");
  }
  for (const float deviation : n.deviation) {
    check(std::isfinite(deviation) && deviation > 0, op, ": got a deviation of ", deviation,
          ", expected a finite number above 0");
  }
}

bool is_picture_dtype(DType dtype) {
  return is_floating(dtype) || dtype == DType::u8 || dtype == DType::boolean;
}

// [C, H, W] on the CPU, without history.
Tensor checked_picture(const char* op, const Tensor& picture) {
  check(picture.defined(), op, ": got an undefined tensor, expected a picture [C, H, W] or [H, W]");
  const Dims& sizes = picture.sizes();
  check(picture.dim() != 4, op, ": got a batch ", sizes,
        ", expected one picture [C, H, W]; make_grid() makes one of a batch, x[i] is one of it");
  check(picture.dim() == 2 || picture.dim() == 3, op, ": got a tensor ", sizes,
        ", expected a picture [C, H, W] or [H, W]");
  check(picture.numel() > 0, op, ": got an empty picture ", sizes, ", expected at least one pixel");
  const Tensor chw = picture.dim() == 2 ? unsqueeze(picture.detach(), 0) : picture.detach();
  check(chw.size(0) <= kMaxChannels, op, ": got a tensor ", sizes, " with ", chw.size(0),
        " channels, expected a picture [C, H, W] of 1 to ", kMaxChannels,
        (sizes[picture.dim() - 1] <= kMaxChannels ? "; permute(x, {2, 0, 1}) makes one of [H, W, C]"
                                                  : ""));
  check(chw.size(1) <= kMaxPictureSide && chw.size(2) <= kMaxPictureSide, op, ": got a tensor ",
        sizes, ", expected sides of at most ", kMaxPictureSide, " pixels");
  check(is_picture_dtype(picture.dtype()), op, ": got a picture of ", picture.dtype(),
        ", expected floating values from 0 to 1, u8 or bool");
  return chw.to(Device{});
}

uint8_t to_byte(double value) {  // REQUIRES: not NaN
  return static_cast<uint8_t>(std::floor(std::clamp(value, 0.0, 1.0) * 255 + 0.5));
}

// Reports the NaN at `index` of a picture [C, H, W].
[[noreturn]] void fail_of_nan(const char* op, const Dims& sizes, int64_t index) {
  const int64_t x = index % sizes[2], y = index / sizes[2] % sizes[1];
  fail(op, ": got NaN at channel ", index / sizes[2] / sizes[1], ", row ", y, ", column ", x,
       " of a picture ", sizes, ", expected numbers from 0 to 1");
}

}  // namespace

Tensor to_tensor(const Image& image, const Normalization& normalization) {
  check_whole("to_tensor", image);
  check_normalization("to_tensor", normalization, image.channels);
  const int64_t pixels = int64_t{image.height} * image.width, channels = image.channels;
  Tensor picture = empty({channels, image.height, image.width});
  Normalizer(image.channels, normalization.mean, normalization.deviation)
      .apply(image.pixels.data(), picture.data<float>(), DType::f32, pixels, pixels);
  return picture;
}

Image to_image(const Tensor& picture, const Normalization& normalization) {
  const NoGradGuard guard;
  const Tensor chw = checked_picture("to_image", picture);
  const auto channels = static_cast<int>(chw.size(0));
  check_normalization("to_image", normalization, channels);
  const bool plain = normalization.mean.empty() && normalization.deviation.empty();
  check(plain || is_floating(chw.dtype()), "to_image: got a normalization and a picture of ",
        chw.dtype(), ", expected floating values with it");
  Image image = make_image(static_cast<int>(chw.size(1)), static_cast<int>(chw.size(2)), channels);
  const int64_t pixels = chw.size(1) * chw.size(2);
  const auto store = [&](int64_t c, int64_t i, uint8_t byte) {
    image.pixels[static_cast<size_t>(i * channels + c)] = byte;
  };
  if (!is_floating(chw.dtype())) {
    const std::vector<float> values = chw.to_vector<float>();
    const float scale = chw.dtype() == DType::boolean ? 255 : 1;
    for (int64_t k = 0; k < chw.numel(); ++k) {
      store(k / pixels, k % pixels, static_cast<uint8_t>(values[static_cast<size_t>(k)] * scale));
    }
    return image;
  }
  const std::vector<double> values = chw.to_vector<double>();
  for (int64_t c = 0; c < channels; ++c) {
    const auto at = static_cast<size_t>(c);
    const double mean = normalization.mean.empty() ? 0 : double{normalization.mean[at]};
    const double deviation =
        normalization.deviation.empty() ? 1 : double{normalization.deviation[at]};
    for (int64_t i = 0; i < pixels; ++i) {
      const double value = values[static_cast<size_t>(c * pixels + i)] * deviation + mean;
      if (std::isnan(value)) {
        fail_of_nan("to_image", chw.sizes(), c * pixels + i);
      }
      store(c, i, to_byte(value));
    }
  }
  return image;
}

// grids -------------------------------------------------------------------------------------------

namespace {

void check_grid(const Tensor& batch, const GridOptions& o) {
  check(batch.defined() && batch.dim() == 4, "make_grid: got ",
        batch.defined() ? text("a tensor ", batch.sizes()) : "an undefined tensor",
        ", expected a batch of pictures [N, C, H, W]");
  check(batch.numel() > 0, "make_grid: got an empty batch ", batch.sizes(),
        ", expected at least one picture of at least one pixel");
  check(is_picture_dtype(batch.dtype()), "make_grid: got pictures of ", batch.dtype(),
        ", expected floating values from 0 to 1, u8 or bool");
  check(o.columns >= 1 && o.columns <= kMaxPictureSide, "make_grid: got ", o.columns,
        " columns, expected 1 to ", kMaxPictureSide);
  check(o.padding >= 0 && o.padding <= kMaxPictureSide, "make_grid: got a padding of ", o.padding,
        ", expected 0 to ", kMaxPictureSide, " pixels");
  check(o.pad_value >= 0 && o.pad_value <= 1, "make_grid: got pad_value = ", o.pad_value,
        ", expected 0 (black) to 1 (white)");
  check(int{o.value_range.has_value()} + int{o.normalize} + int{o.scale_each} <= 1,
        "make_grid: got more than one of value_range, normalize and scale_each");
  if (o.value_range) {
    const auto [low, high] = *o.value_range;
    check(std::isfinite(low) && std::isfinite(high) && low < high,
          "make_grid: got the value_range ", low, " to ", high,
          ", expected two finite numbers in ascending order");
  }
}

// f32, `low` becomes 0 and `high` 1. A picture of one value becomes black.
Tensor mapped(const Tensor& x, double low, double high) {
  const double width = high > low ? high - low : 1;
  return (x.to(DType::f64) - low).to(DType::f32) / width;
}

Tensor mapped_to_own_range(const Tensor& x) {
  const Tensor wide = x.to(DType::f64);
  const double low = min(wide).item(), high = max(wide).item();
  check(
      std::isfinite(low) && std::isfinite(high),
      "make_grid: got pictures with values that are not finite, expected finite ones to normalize");
  return mapped(x, low, high);
}

}  // namespace

Tensor make_grid(const Tensor& batch, const GridOptions& options) {
  check_grid(batch, options);
  const NoGradGuard guard;
  Tensor x = batch.detach();
  if (options.value_range) {
    x = mapped(x, (*options.value_range)[0], (*options.value_range)[1]);
  } else if (options.normalize) {
    x = mapped_to_own_range(x);
  }
  const int64_t count = x.size(0), columns = std::min(options.columns, count);
  const int64_t rows = (count + columns - 1) / columns;
  const int64_t height = x.size(2) + options.padding, width = x.size(3) + options.padding;
  check(rows * height <= kMaxPictureSide && columns * width <= kMaxPictureSide, "make_grid: got ",
        count, " pictures of ", x.size(2), " x ", x.size(3), " in ", columns,
        " columns, expected a grid of at most ", kMaxPictureSide, " pixels on a side");
  const DType dtype = options.scale_each ? DType::f32 : x.dtype();
  const double pad = dtype == DType::u8 ? std::round(options.pad_value * 255) : options.pad_value;
  Tensor grid =
      full({x.size(1), rows * height + options.padding, columns * width + options.padding}, pad,
           dtype, x.device());
  for (int64_t i = 0; i < count; ++i) {
    const Tensor picture = options.scale_each ? mapped_to_own_range(x[i]) : x[i];
    narrow(narrow(grid, 1, i / columns * height + options.padding, x.size(2)), 2,
           i % columns * width + options.padding, x.size(3))
        .copy_(picture);
  }
  return grid;
}

// files -------------------------------------------------------------------------------------------

namespace {

void save_bytes(const std::string& path, const std::vector<uint8_t>& bytes) {
  write_file_durably(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// The op's name in the errors of a tensor.
Image image_of(const char* op, const Tensor& picture) {
  const NoGradGuard guard;
  return to_image(checked_picture(op, picture));
}

}  // namespace

void save_png(const std::string& path, const Image& image, int level) {
  save_bytes(path, encode_png(image, level));
}

void save_png(const std::string& path, const Tensor& picture, int level) {
  save_png(path, image_of("save_png", picture), level);
}

void save_jpeg(const std::string& path, const Image& image, int quality) {
  save_bytes(path, encode_jpeg(image, quality));
}

void save_jpeg(const std::string& path, const Tensor& picture, int quality) {
  save_jpeg(path, image_of("save_jpeg", picture), quality);
}

}  // namespace binade::data
