#include <binade/core/ops.h>
#include <binade/nn/pool.h>
#include <binade/nn/window_internal.h>

namespace binade::nn {
MaxPool2d::MaxPool2d(const MaxPool2dOptions& options) : options_(options) {
  check_window("MaxPool2d", {options.kernel, options.stride.value_or(options.kernel),
                             options.padding, options.dilation});
}

AvgPool2d::AvgPool2d(const AvgPool2dOptions& options) : options_(options) {
  check_window("AvgPool2d",
               {options.kernel, options.stride.value_or(options.kernel), options.padding, 1});
}

MaxPool1d::MaxPool1d(const MaxPool1dOptions& options) : options_(options) {
  check_window("MaxPool1d", {options.kernel, options.stride.value_or(options.kernel),
                             options.padding, options.dilation});
}

AvgPool1d::AvgPool1d(const AvgPool1dOptions& options) : options_(options) {
  check_window("AvgPool1d",
               {options.kernel, options.stride.value_or(options.kernel), options.padding, 1});
}

AdaptiveAvgPool2d::AdaptiveAvgPool2d(const AdaptiveAvgPool2dOptions& options) : options_(options) {
  check_sizes("AdaptiveAvgPool2d", {{"output", smaller(options.output)}});
}

Tensor MaxPool2d::forward(const Tensor& x) {
  const auto& [kernel, given, padding, dilation, ceil_mode] = options_;
  const Pair stride = given.value_or(kernel);
  return max_pool2d(x, {.kernel = kernel,
                        .stride = stride,
                        .padding = padding,
                        .dilation = dilation,
                        .ceil_mode = ceil_mode});
}

Tensor AvgPool2d::forward(const Tensor& x) {
  const auto& [kernel, given, padding, ceil_mode, count_include_pad] = options_;
  const Pair stride = given.value_or(kernel);
  return avg_pool2d(x, {.kernel = kernel,
                        .stride = stride,
                        .padding = padding,
                        .ceil_mode = ceil_mode,
                        .count_include_pad = count_include_pad});
}

Tensor MaxPool1d::forward(const Tensor& x) {
  const auto& [kernel, stride, padding, dilation, ceil_mode] = options_;
  check(x.dim() == 3, "MaxPool1d: got shape ", x.sizes(), ", expected [N, C, L]");
  const Tensor y = max_pool2d(unsqueeze(x, 2), {.kernel = {1, kernel},
                                                .stride = {1, stride.value_or(kernel)},
                                                .padding = {0, padding},
                                                .dilation = {1, dilation},
                                                .ceil_mode = ceil_mode});
  return squeeze(y, 2);
}

Tensor AvgPool1d::forward(const Tensor& x) {
  const auto& [kernel, stride, padding, ceil_mode, count_include_pad] = options_;
  check(x.dim() == 3, "AvgPool1d: got shape ", x.sizes(), ", expected [N, C, L]");
  const Tensor y = avg_pool2d(unsqueeze(x, 2), {.kernel = {1, kernel},
                                                .stride = {1, stride.value_or(kernel)},
                                                .padding = {0, padding},
                                                .ceil_mode = ceil_mode,
                                                .count_include_pad = count_include_pad});
  return squeeze(y, 2);
}

Tensor AdaptiveAvgPool2d::forward(const Tensor& x) {
  return adaptive_avg_pool2d(x, options_.output.vertical, options_.output.horizontal);
}

Tensor GlobalAvgPool::forward(const Tensor& x) {
  check(x.dim() == 4, "GlobalAvgPool: got shape ", x.sizes(), ", expected [N, C, H, W]");
  return mean(x, {2, 3});
}

}  // namespace binade::nn
