#include <binade/core/ops.h>
#include <binade/core/ops/rearrange.h>
#include <binade/nn/options_internal.h>
#include <binade/nn/resize.h>

#include <cmath>

namespace binade::nn {
namespace {

Tensor pad_image(const char* layer, const Tensor& x, const Pad2dOptions& by, PadMode mode) {
  check(x.dim() == 3 || x.dim() == 4, layer, ": got shape ", x.sizes(),
        ", expected [N, C, H, W] or [C, H, W]");
  return pad(x, {by.left, by.right, by.top, by.bottom}, {.mode = mode});
}

}  // namespace

Upsample::Upsample(const UpsampleOptions& options) : options_(options) {
  check(options.size.has_value() != options.scale_factor.has_value(), "Upsample: got ",
        options.size ? "both" : "neither", " of size and scale_factor, expected one");
  check(!options.scale_factor || (*options.scale_factor > 0 && *options.scale_factor <= 1e6),
        "Upsample: got scale_factor = ", options.scale_factor.value_or(0),
        ", expected a positive number of at most 1e6");
  const Pair size = options.size.value_or(Pair(1));
  check(size.vertical > 0 && size.horizontal > 0, "Upsample: got size = ", size.vertical, "x",
        size.horizontal, ", expected positive numbers");
}

Tensor Upsample::forward(const Tensor& x) {
  check(x.dim() == 4, "Upsample: got shape ", x.sizes(), ", expected [N, C, H, W]");
  const auto scaled = [&](int64_t size) {
    return static_cast<int64_t>(std::floor(static_cast<double>(size) * *options_.scale_factor));
  };
  const int64_t height = options_.size ? options_.size->vertical : scaled(x.size(2));
  const int64_t width = options_.size ? options_.size->horizontal : scaled(x.size(3));
  return interpolate(x, height, width,
                     {.mode = options_.mode, .align_corners = options_.align_corners});
}

Tensor ZeroPad2d::forward(const Tensor& x) {
  return pad_image("ZeroPad2d", x, options_, PadMode::constant);
}

Tensor ReflectionPad2d::forward(const Tensor& x) {
  return pad_image("ReflectionPad2d", x, options_, PadMode::reflect);
}

PixelShuffle::PixelShuffle(const PixelShuffleOptions& options) : options_(options) {
  check_sizes("PixelShuffle", {{"upscale_factor", options.upscale_factor}});
}

PixelUnshuffle::PixelUnshuffle(const PixelUnshuffleOptions& options) : options_(options) {
  check_sizes("PixelUnshuffle", {{"downscale_factor", options.downscale_factor}});
}

Tensor Unflatten::forward(const Tensor& x) {
  const int d = options_.dim < 0 ? options_.dim + x.dim() : options_.dim;
  check(d >= 0 && d < x.dim() && !options_.sizes.empty(), "Unflatten: got dimension ", options_.dim,
        " and sizes ", options_.sizes, " for shape ", x.sizes(),
        ", expected one of its dimensions and at least one size");
  int64_t known = 1;
  for (const int64_t size : options_.sizes) {
    check(size >= -1 && !__builtin_mul_overflow(known, size == -1 ? 1 : size, &known),
          "Unflatten: got sizes ", options_.sizes, ", expected a product of ", x.sizes()[d]);
  }
  Dims sizes;
  for (int i = 0; i < x.dim(); ++i) {
    if (i != d) {
      sizes.push_back(x.sizes()[i]);
      continue;
    }
    for (int64_t size : options_.sizes) {
      sizes.push_back(size == -1 && known > 0 ? x.sizes()[d] / known : size);
    }
  }
  return reshape(x, sizes);
}

}  // namespace binade::nn
