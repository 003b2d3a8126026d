#include <binade/core/ops.h>
#include <binade/nn/fusion_internal.h>
#include <binade/nn/models.h>

#include <algorithm>

namespace binade::nn {
namespace {

// Edge length after the three poolings of CNN; larger maps are averaged, so that fc1 stays small.
constexpr int64_t kLargestMap = 8, kAveragedMap = 4;

bool averages(const CNNOptions& options) {
  return options.height / 8 > kLargestMap || options.width / 8 > kLargestMap;
}

int64_t cnn_features(const CNNOptions& options) {
  check(options.height >= 8 && options.width >= 8, "CNN: got images of ", options.height, "x",
        options.width, ", expected at least 8x8");
  return 64 * (averages(options) ? kAveragedMap * kAveragedMap
                                 : (options.height / 8) * (options.width / 8));
}

Tensor halve(const Tensor& x) { return max_pool2d(x, {.kernel = {2, 2}, .stride = {2, 2}}); }

Conv2dOptions conv3x3(int64_t in, int64_t out) {
  return {.in = in, .out = out, .kernel = 3, .padding = 1, .bias = false};
}

struct NamedDepth {
  std::string_view name;
  int64_t depth;
};
constexpr NamedDepth kResNets[] = {
    {"resnet18", 18}, {"resnet34", 34}, {"resnet50", 50}, {"resnet101", 101}, {"resnet152", 152}};
constexpr const char* kModelNames =
    "mlp, cnn, resnet18, resnet34, resnet50, resnet101 or resnet152";

}  // namespace

MLP::MLP(const MLPOptions& options) {
  int64_t in = options.in;
  std::vector<int64_t> widths = options.hidden;
  widths.push_back(options.classes);
  for (int64_t out : widths) {
    layers_.push_back(std::make_unique<Linear>(LinearOptions{.in = in, .out = out}));
    register_module("fc" + std::to_string(layers_.size()), *layers_.back());
    in = out;
  }
}

Tensor MLP::forward(const Tensor& x) {
  check(x.dim() >= 2, "MLP: got shape ", x.sizes(), ", expected [N, ...]");
  Tensor y = flatten(x, 1);
  for (size_t i = 0; i < layers_.size(); ++i) {
    y = Fusion::run({.first = *layers_[i], .relu = i + 1 < layers_.size()}, y);
  }
  return y;
}

CNN::CNN(const CNNOptions& options)
    : conv1(conv3x3(options.channels, 32)),
      bn1({.channels = 32}),
      conv2(conv3x3(32, 64)),
      bn2({.channels = 64}),
      conv3(conv3x3(64, 64)),
      bn3({.channels = 64}),
      dropout({.p = options.dropout}),
      fc1({.in = cnn_features(options), .out = 128}),
      fc2({.in = 128, .out = options.classes}),
      options_(options) {
  register_module("conv1", conv1);
  register_module("bn1", bn1);
  register_module("conv2", conv2);
  register_module("bn2", bn2);
  register_module("conv3", conv3);
  register_module("bn3", bn3);
  register_module("dropout", dropout);
  register_module("fc1", fc1);
  register_module("fc2", fc2);
}

Tensor CNN::forward(const Tensor& x) {
  check(x.dim() == 4 && x.size(1) == options_.channels && x.size(2) == options_.height &&
            x.size(3) == options_.width,
        "CNN: got shape ", x.sizes(), ", expected [N, ", options_.channels, ", ", options_.height,
        ", ", options_.width, "]");
  Tensor y = halve(Fusion::run({.first = conv1, .norm = &bn1, .relu = true}, x));
  y = halve(Fusion::run({.first = conv2, .norm = &bn2, .relu = true}, y));
  y = halve(Fusion::run({.first = conv3, .norm = &bn3, .relu = true}, y));
  if (averages(options_)) {
    y = adaptive_avg_pool2d(y, kAveragedMap, kAveragedMap);
  }
  y = dropout(flatten(y, 1));
  return fc2(Fusion::run({.first = fc1, .relu = true}, y));
}

std::unique_ptr<Module> make_model(std::string_view name, const ModelOptions& options) {
  const auto& [channels, height, width, classes] = options;
  check(channels > 0 && height > 0 && width > 0 && classes > 0, "make_model: got ", channels,
        " channels, images of ", height, "x", width, " and ", classes,
        " classes, expected positive numbers");
  if (name == "mlp") {
    return std::make_unique<MLP>(
        MLPOptions{.in = element_count({channels, height, width}), .classes = classes});
  }
  if (name == "cnn") {
    return std::make_unique<CNN>(
        CNNOptions{.channels = channels, .classes = classes, .height = height, .width = width});
  }
  const auto* depth = std::ranges::find(kResNets, name, &NamedDepth::name);
  check(depth != std::end(kResNets), "make_model: got '", name, "', expected ", kModelNames);
  return std::make_unique<ResNet>(ResNetOptions{.depth = depth->depth,
                                                .classes = classes,
                                                .channels = channels,
                                                .small_images = height < 64 || width < 64});
}

}  // namespace binade::nn
