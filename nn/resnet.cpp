// Residual nets: blocks and whole models.
#include <binade/core/ops.h>
#include <binade/nn/fusion_internal.h>
#include <binade/nn/init.h>
#include <binade/nn/resnet.h>

namespace binade::nn {

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
  if (options.stride != 1 || options.in != options.out) {
    downsample.add<Conv2d>({.in = options.in,
                            .out = options.out,
                            .kernel = 1,
                            .stride = options.stride,
                            .bias = false});
    downsample.add<BatchNorm2d>({.channels = options.out});
  }
}

Tensor ResidualBlock::forward(const Tensor& x) {
  const Tensor y = Fusion::run({.first = conv1, .norm = &bn1, .relu = true}, x);
  const Tensor shortcut = downsample.size() > 0 ? downsample(x) : x;
  return Fusion::run({.first = conv2, .norm = &bn2, .residual = shortcut, .relu = true}, y);
}

ResNet::ResNet(const ResNetOptions& options)
    : conv1({.in = options.channels,
             .out = 64,
             .kernel = options.small_images ? 3 : 7,
             .stride = options.small_images ? 1 : 2,
             .padding = options.small_images ? 1 : 3,
             .bias = false}),
      bn1({.channels = 64}),
      fc({.in = 512, .out = options.classes}),
      small_images_(options.small_images) {
  check(options.depth == 18 || options.depth == 34, "ResNet: got depth ", options.depth,
        ", expected 18 or 34");
  const int64_t blocks18[] = {2, 2, 2, 2}, blocks34[] = {3, 4, 6, 3};
  const int64_t* blocks = options.depth == 18 ? blocks18 : blocks34;
  register_module("conv1", conv1);
  register_module("bn1", bn1);
  Sequential* const layers[] = {&layer1, &layer2, &layer3, &layer4};
  int64_t in = 64;
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t out = int64_t{64} << stage;
    for (int64_t i = 0; i < blocks[stage]; ++i) {
      layers[stage]->add<ResidualBlock>(
          {.in = in, .out = out, .stride = stage > 0 && i == 0 ? 2 : 1});
      in = out;
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
