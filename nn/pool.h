// Pooling layers. They take [N, C, H, W] and keep its memory order; those over sequences take
// [N, C, L], an image of height 1.
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

struct MaxPool1dOptions {
  int64_t kernel;
  std::optional<int64_t> stride = std::nullopt;  // the kernel where not given
  int64_t padding = 0;
  int64_t dilation = 1;
  bool ceil_mode = false;
};

class MaxPool1d : public Module {
 public:
  using Options = MaxPool1dOptions;
  explicit MaxPool1d(const MaxPool1dOptions& options) : options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  MaxPool1dOptions options_;
};

struct AvgPool1dOptions {
  int64_t kernel;
  std::optional<int64_t> stride = std::nullopt;
  int64_t padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};

class AvgPool1d : public Module {
 public:
  using Options = AvgPool1dOptions;
  explicit AvgPool1d(const AvgPool1dOptions& options) : options_(options) {}
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
