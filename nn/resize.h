// Layers without parameters that change sizes: upsampling, padding, unflattening, pixels in place
// of channels.
#pragma once
#include <binade/core/ops/image.h>
#include <binade/nn/conv.h>

#include <array>

namespace binade::nn {

struct UpsampleOptions {
  // Set exactly one of the two. A factor multiplies the sizes and rounds down.
  std::optional<Pair> size = std::nullopt;
  std::optional<double> scale_factor = std::nullopt;
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;
};

// [N, C, H, W] -> [N, C, size].
class Upsample : public Module {
 public:
  using Options = UpsampleOptions;
  explicit Upsample(const UpsampleOptions& options);
  Upsample(Module& parent, std::string_view name, const UpsampleOptions& options)
      : Upsample(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  UpsampleOptions options_;
};

struct Pad2dOptions {
  int64_t left = 0, right = 0, top = 0, bottom = 0;
};

// Pads the last two dimensions with zeros (a negative pad removes elements), or by reflection.
class ZeroPad2d : public Module {
 public:
  using Options = Pad2dOptions;
  explicit ZeroPad2d(const Pad2dOptions& options) : options_(options) {}
  ZeroPad2d(Module& parent, std::string_view name, const Pad2dOptions& options)
      : ZeroPad2d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  Pad2dOptions options_;
};

class ReflectionPad2d : public Module {
 public:
  using Options = Pad2dOptions;
  explicit ReflectionPad2d(const Pad2dOptions& options) : options_(options) {}
  ReflectionPad2d(Module& parent, std::string_view name, const Pad2dOptions& options)
      : ReflectionPad2d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  Pad2dOptions options_;
};

struct PixelShuffleOptions {
  int64_t upscale_factor;
};

// [..., C r^2, H, W] -> [..., C, H r, W r], r = upscale_factor.
class PixelShuffle : public Module {
 public:
  using Options = PixelShuffleOptions;
  explicit PixelShuffle(const PixelShuffleOptions& options);
  PixelShuffle(Module& parent, std::string_view name, const PixelShuffleOptions& options)
      : PixelShuffle(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override { return pixel_shuffle(x, options_.upscale_factor); }

 private:
  PixelShuffleOptions options_;
};

struct PixelUnshuffleOptions {
  int64_t downscale_factor;
};

// [..., C, H r, W r] -> [..., C r^2, H, W], r = downscale_factor.
class PixelUnshuffle : public Module {
 public:
  using Options = PixelUnshuffleOptions;
  explicit PixelUnshuffle(const PixelUnshuffleOptions& options);
  PixelUnshuffle(Module& parent, std::string_view name, const PixelUnshuffleOptions& options)
      : PixelUnshuffle(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override { return pixel_unshuffle(x, options_.downscale_factor); }

 private:
  PixelUnshuffleOptions options_;
};

struct UnflattenOptions {
  int dim;
  Dims sizes;  // the new dimensions; one size may be -1
};

class Unflatten : public Module {
 public:
  using Options = UnflattenOptions;
  explicit Unflatten(const UnflattenOptions& options) : options_(options) {}
  Unflatten(Module& parent, std::string_view name, const UnflattenOptions& options)
      : Unflatten(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  UnflattenOptions options_;
};

}  // namespace binade::nn
