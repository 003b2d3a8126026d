// Residual nets for images (He et al., "Deep Residual Learning for Image Recognition", CVPR 2016).
// Parameters and buffers have the names of torchvision, so train::load_model() reads its files.
#pragma once
#include <binade/nn/linear.h>
#include <binade/nn/sequential.h>

namespace binade::nn {

struct ResidualBlockOptions {
  int64_t in;
  int64_t out;
  int64_t stride = 1;
};

// relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)) with 3x3 convolutions; the shortcut is a 1x1
// convolution with batch norm, named downsample, if stride or channels change.
class ResidualBlock : public Module {
 public:
  using Options = ResidualBlockOptions;
  explicit ResidualBlock(const ResidualBlockOptions& options);
  ResidualBlock(Module& parent, std::string_view name, const ResidualBlockOptions& options)
      : ResidualBlock(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Conv2d conv1;
  BatchNorm2d bn1;
  Conv2d conv2;
  BatchNorm2d bn2;
  Sequential downsample;  // empty: the identity
};

struct BottleneckOptions {
  int64_t in;
  int64_t width;  // of the 3x3 convolution; the block has 4 width output channels
  int64_t stride = 1;
};

// relu(bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(x))))))) + shortcut(x)) with convolutions of 1x1,
// 3x3 and 1x1; the shortcut is that of ResidualBlock. The 3x3 convolution has the stride, as in
// torchvision ("ResNet v1.5").
class Bottleneck : public Module {
 public:
  using Options = BottleneckOptions;
  static constexpr int64_t kExpansion = 4;  // output channels by width
  explicit Bottleneck(const BottleneckOptions& options);
  Bottleneck(Module& parent, std::string_view name, const BottleneckOptions& options)
      : Bottleneck(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Conv2d conv1;
  BatchNorm2d bn1;
  Conv2d conv2;
  BatchNorm2d bn2;
  Conv2d conv3;
  BatchNorm2d bn3;
  Sequential downsample;  // empty: the identity
};

struct ResNetOptions {
  int64_t depth = 18;  // 18 or 34: residual blocks; 50, 101 or 152: bottlenecks
  int64_t classes = 1000;
  int64_t channels = 3;
  bool small_images = false;  // a 3x3 stem of stride 1 without pooling, as for CIFAR
  // Numbers of blocks in layer1 to layer4, in place of those of the depth.
  std::vector<int64_t> blocks = {};
  int64_t width = 64;  // channels of the stem and of layer1's 3x3 convolutions
};

// x [N, channels, H, W] -> [N, classes].
class ResNet : public Module {
 public:
  using Options = ResNetOptions;
  explicit ResNet(const ResNetOptions& options = {});
  ResNet(Module& parent, std::string_view name, const ResNetOptions& options = {})
      : ResNet(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Conv2d conv1;
  BatchNorm2d bn1;
  Sequential layer1, layer2, layer3, layer4;
  Linear fc;

 private:
  bool small_images_;
};

}  // namespace binade::nn
