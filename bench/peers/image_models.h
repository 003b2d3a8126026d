// Image classifiers and a U-Net, written from nn's public classes as users write their own. Their
// parameters have the same names as in torch_image_models.py.
#pragma once
#include <binade/nn/conv.h>
#include <binade/nn/list.h>
#include <binade/nn/sequential.h>
#include <binade/nn/transformer.h>

namespace binade::peers {

// A MobileNet for small images: alternating 3x3 depthwise and 1x1 convolutions, all with batch norm
// and relu. x [N, 3, 32, 32] -> [N, 10].
std::unique_ptr<nn::Module> make_depthwise_net();

struct BottleneckStage {
  int64_t blocks;
  int64_t width;  // channels of the 3x3 convolutions
  int64_t out;
};
struct BottleneckNetOptions {
  std::vector<BottleneckStage> stages;
  int64_t groups = 1;         // groups of the 3x3 convolutions
  bool small_images = false;  // 3x3 stem with stride 1, not 7x7 with stride 2 and pooling
  int64_t classes = 10;
};

// A residual net of bottlenecks (1x1, 3x3, 1x1): ResNet-50 has one group, ResNeXt 32.
// x [N, 3, H, W] -> [N, classes].
std::unique_ptr<nn::Module> make_bottleneck_net(const BottleneckNetOptions& options);

struct ViTOptions {
  int64_t image = 32;
  int64_t patch = 4;
  int64_t layers = 6;
  int64_t embed = 192;
  int64_t heads = 6;
  int64_t classes = 10;
};

// A transformer encoder on image patches, without dropout: pre-norm, exact gelu, learned positions,
// mean over the patches. x [N, 3, image, image] -> [N, classes].
class ViT : public nn::Module {
 public:
  explicit ViT(const ViTOptions& options = {});
  Tensor forward(const Tensor& x) override;

  nn::Conv2d patches;
  Tensor positions;  // [patches, embed]
  nn::List<nn::TransformerEncoderLayer> layers;
  nn::LayerNorm norm;
  nn::Linear head;
};

struct UNetOptions {
  std::vector<int64_t> widths = {32, 64, 128};
  int64_t classes = 2;
};

// A U-Net with two 3x3 convolutions with batch norm and relu at each of three resolutions. It goes
// down by 2x2 max pooling and up by 2x2 transposed convolutions with stride 2 and concatenation. x
// [N, 3, H, W] -> [N, classes, H, W].
class UNet : public nn::Module {
 public:
  explicit UNet(const UNetOptions& options = {});
  Tensor forward(const Tensor& x) override;

  nn::List<nn::Sequential> down, up;
  nn::List<nn::ConvTranspose2d> enlarge;
  nn::Conv2d head;
};

}  // namespace binade::peers
