// Residual nets for images (He et al., "Deep Residual Learning for Image Recognition", CVPR 2016).
#pragma once
#include <binade/nn/sequential.h>

namespace binade::nn {

struct ResidualBlockOptions {
  int64_t in;
  int64_t out;
  int64_t stride = 1;
};

// The basic block of He et al., "Deep Residual Learning for Image Recognition" (CVPR 2016):
// relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)); the shortcut is a 1x1 convolution with batch
// norm if stride or channels change. It has the parameter names of torchvision.
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

struct ResNetOptions {
  int64_t depth = 18;  // 18 or 34
  int64_t classes = 1000;
  int64_t channels = 3;
  bool small_images = false;  // a 3x3 stem of stride 1 without pooling, as for CIFAR
};

// Residual net of basic blocks; it has the parameter names of torchvision.
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
