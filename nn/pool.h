// Pooling layers. They take [N, C, H, W] and keep its memory order; pooling of sequences takes [N,
// C, L] as an image of height 1.
#pragma once
#include <binade/nn/conv.h>

namespace binade::nn {

// Size: int64_t for one dimension, Pair for two.
template <class Size>
struct MaxPoolOptions {
  Size kernel;
  std::optional<Size> stride = std::nullopt;  // default: the kernel
  Size padding = 0;
  Size dilation = 1;
  bool ceil_mode = false;
};
using MaxPool1dOptions = MaxPoolOptions<int64_t>;
using MaxPool2dOptions = MaxPoolOptions<Pair>;

template <class Size>
struct AvgPoolOptions {
  Size kernel;
  std::optional<Size> stride = std::nullopt;
  Size padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
using AvgPool1dOptions = AvgPoolOptions<int64_t>;
using AvgPool2dOptions = AvgPoolOptions<Pair>;

class MaxPool2d : public Module {
 public:
  using Options = MaxPool2dOptions;
  explicit MaxPool2d(const MaxPool2dOptions& options);
  MaxPool2d(Module& parent, std::string_view name, const MaxPool2dOptions& options)
      : MaxPool2d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  MaxPool2dOptions options_;
};

class AvgPool2d : public Module {
 public:
  using Options = AvgPool2dOptions;
  explicit AvgPool2d(const AvgPool2dOptions& options);
  AvgPool2d(Module& parent, std::string_view name, const AvgPool2dOptions& options)
      : AvgPool2d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  AvgPool2dOptions options_;
};

class MaxPool1d : public Module {
 public:
  using Options = MaxPool1dOptions;
  explicit MaxPool1d(const MaxPool1dOptions& options);
  MaxPool1d(Module& parent, std::string_view name, const MaxPool1dOptions& options)
      : MaxPool1d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  MaxPool1dOptions options_;
};

class AvgPool1d : public Module {
 public:
  using Options = AvgPool1dOptions;
  explicit AvgPool1d(const AvgPool1dOptions& options);
  AvgPool1d(Module& parent, std::string_view name, const AvgPool1dOptions& options)
      : AvgPool1d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  AvgPool1dOptions options_;
};

struct AdaptiveAvgPool2dOptions {
  Pair output;
};

class AdaptiveAvgPool2d : public Module {
 public:
  using Options = AdaptiveAvgPool2dOptions;
  explicit AdaptiveAvgPool2d(const AdaptiveAvgPool2dOptions& options);
  AdaptiveAvgPool2d(Module& parent, std::string_view name, const AdaptiveAvgPool2dOptions& options)
      : AdaptiveAvgPool2d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  AdaptiveAvgPool2dOptions options_;
};

// [N, C, H, W] -> [N, C].
class GlobalAvgPool : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;
};

}  // namespace binade::nn
