// Pooling layers. All take [N, C, H, W] and keep its memory order.
#pragma once
#include <binade/nn/conv.h>

namespace binade::nn {

struct MaxPool2dOptions {
  Pair kernel;
  std::optional<Pair> stride = std::nullopt;  // the kernel where not given
  Pair padding = 0;
  Pair dilation = 1;
  bool ceil_mode = false;
};

class MaxPool2d : public Module {
 public:
  using Options = MaxPool2dOptions;
  explicit MaxPool2d(const MaxPool2dOptions& options) : options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  MaxPool2dOptions options_;
};

struct AvgPool2dOptions {
  Pair kernel;
  std::optional<Pair> stride = std::nullopt;
  Pair padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};

class AvgPool2d : public Module {
 public:
  using Options = AvgPool2dOptions;
  explicit AvgPool2d(const AvgPool2dOptions& options) : options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  AvgPool2dOptions options_;
};

struct AdaptiveAvgPool2dOptions {
  Pair output;
};

class AdaptiveAvgPool2d : public Module {
 public:
  using Options = AdaptiveAvgPool2dOptions;
  explicit AdaptiveAvgPool2d(const AdaptiveAvgPool2dOptions& options) : options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  AdaptiveAvgPool2dOptions options_;
};

// [N, C, H, W] -> [N, C].
class GlobalAvgPool : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

}  // namespace binade::nn
