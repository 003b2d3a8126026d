// Residual nets: blocks and whole models.
#include <binade/core/ops.h>
#include <binade/nn/fusion_internal.h>
#include <binade/nn/init.h>
#include <binade/nn/options_internal.h>
#include <binade/nn/resnet.h>

#include <algorithm>
#include <array>

namespace binade::nn {
namespace {

constexpr size_t kStages = 4;

struct Depth {
  int64_t depth;
  std::array<int64_t, kStages> blocks;
  bool bottleneck;
};
constexpr Depth kDepths[] = {{18, {2, 2, 2, 2}, false},
                             {34, {3, 4, 6, 3}, false},
                             {50, {3, 4, 6, 3}, true},
                             {101, {3, 4, 23, 3}, true},
                             {152, {3, 8, 36, 3}, true}};

const Depth& depth_of(const ResNetOptions& options) {
  const auto* found = std::ranges::find(kDepths, options.depth, &Depth::depth);
  check(found != std::end(kDepths), "ResNet: got depth ", options.depth,
        ", expected 18, 34, 50, 101 or 152; other numbers of blocks are set by the option blocks");
  return *found;
}

Conv2dOptions stem(const ResNetOptions& options) {
  depth_of(options);  // checked before anything is allocated
  check_sizes(
      "ResNet",
      {{"channels", options.channels}, {"classes", options.classes}, {"width", options.width}});
  check(options.blocks.empty() ||
            (options.blocks.size() == kStages && std::ranges::min(options.blocks) > 0),
        "ResNet: got blocks of ", options.blocks.size(),
        " numbers, expected four positive numbers, of layer1 to layer4");
  return {.in = options.channels,
          .out = options.width,
          .kernel = options.small_images ? 3 : 7,
          .stride = options.small_images ? 1 : 2,
          .padding = options.small_images ? 1 : 3,
          .bias = false};
}

int64_t features(const ResNetOptions& options) {
  const int64_t last = options.width << (kStages - 1);
  return depth_of(options).bottleneck ? Bottleneck::kExpansion * last : last;
}

// Without stride and with equal channels the shortcut is the identity: no modules.
void add_projection(Sequential& downsample, const ResidualBlockOptions& options) {
  if (options.stride != 1 || options.in != options.out) {
    downsample.add<Conv2d>({.in = options.in,
                            .out = options.out,
                            .kernel = 1,
                            .stride = options.stride,
                            .bias = false});
    downsample.add<BatchNorm2d>({.channels = options.out});
  }
}

Tensor shortcut(Sequential& downsample, const Tensor& x) {
  return downsample.size() > 0 ? downsample(x) : x;
}

}  // namespace

ResidualBlock::ResidualBlock(const ResidualBlockOptions& options)
    : conv1({.in = options.in,
             .out = options.out,
             .kernel = 3,
             .stride = options.stride,
             .padding = 1,
             .bias = false}),
      bn1({.channels = options.out}),
      conv2({.in = options.out, .out = options.out, .kernel = 3, .padding = 1, .bias = false}),
      bn2({.channels = options.out}) {
  register_module("conv1", conv1);
  register_module("bn1", bn1);
  register_module("conv2", conv2);
  register_module("bn2", bn2);
  register_module("downsample", downsample);
  add_projection(downsample, options);
}

Tensor ResidualBlock::forward(const Tensor& x) {
  const Tensor y = Fusion::run({.first = conv1, .norm = &bn1, .relu = true}, x);
  return Fusion::run(
      {.first = conv2, .norm = &bn2, .residual = shortcut(downsample, x), .relu = true}, y);
}

Bottleneck::Bottleneck(const BottleneckOptions& options)
    : conv1({.in = options.in, .out = options.width, .kernel = 1, .bias = false}),
      bn1({.channels = options.width}),
      conv2({.in = options.width,
             .out = options.width,
             .kernel = 3,
             .stride = options.stride,
             .padding = 1,
             .bias = false}),
      bn2({.channels = options.width}),
      conv3({.in = options.width, .out = kExpansion * options.width, .kernel = 1, .bias = false}),
      bn3({.channels = kExpansion * options.width}) {
  register_module("conv1", conv1);
  register_module("bn1", bn1);
  register_module("conv2", conv2);
  register_module("bn2", bn2);
  register_module("conv3", conv3);
  register_module("bn3", bn3);
  register_module("downsample", downsample);
  add_projection(downsample,
                 {.in = options.in, .out = kExpansion * options.width, .stride = options.stride});
}

Tensor Bottleneck::forward(const Tensor& x) {
  Tensor y = Fusion::run({.first = conv1, .norm = &bn1, .relu = true}, x);
  y = Fusion::run({.first = conv2, .norm = &bn2, .relu = true}, y);
  return Fusion::run(
      {.first = conv3, .norm = &bn3, .residual = shortcut(downsample, x), .relu = true}, y);
}

ResNet::ResNet(const ResNetOptions& options)
    : conv1(stem(options)),
      bn1({.channels = options.width}),
      fc({.in = features(options), .out = options.classes}),
      small_images_(options.small_images) {
  const Depth& depth = depth_of(options);
  register_module("conv1", conv1);
  register_module("bn1", bn1);
  Sequential* const layers[] = {&layer1, &layer2, &layer3, &layer4};
  int64_t in = options.width;
  for (size_t stage = 0; stage < kStages; ++stage) {
    const int64_t width = options.width << stage;
    const int64_t count = options.blocks.empty() ? depth.blocks[stage] : options.blocks[stage];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      if (depth.bottleneck) {
        layers[stage]->add<Bottleneck>({.in = in, .width = width, .stride = stride});
      } else {
        layers[stage]->add<ResidualBlock>({.in = in, .out = width, .stride = stride});
      }
      in = depth.bottleneck ? Bottleneck::kExpansion * width : width;
    }
    register_module("layer" + std::to_string(stage + 1), *layers[stage]);
  }
  register_module("fc", fc);
  for (const auto& [name, w] : named_parameters()) {
    if (w.dim() == 4) {
      init::kaiming_normal(
          w, {.mode = init::FanMode::fan_out, .nonlinearity = init::Nonlinearity::relu});
    }
  }
}

Tensor ResNet::forward(const Tensor& x) {
  Tensor y = Fusion::run({.first = conv1, .norm = &bn1, .relu = true}, x);
  if (!small_images_) {
    y = max_pool2d(y, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  }
  return fc(mean(layer4(layer3(layer2(layer1(y)))), {2, 3}));
}

}  // namespace binade::nn
