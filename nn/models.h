// Classifiers that the samples and benches use.
#pragma once
#include <binade/core/owned.h>
#include <binade/nn/activation.h>
#include <binade/nn/linear.h>
#include <binade/nn/pool.h>
#include <binade/nn/resnet.h>

namespace binade::nn {

struct MLPOptions {
  int64_t in;
  std::vector<int64_t> hidden = {512, 512};
  int64_t classes = 10;
};

// [N, ...] -> [N, classes]: fc1, relu, fc2, relu, ... The input is flattened.
class MLP : public Module {
 public:
  using Options = MLPOptions;
  explicit MLP(const MLPOptions& options);
  MLP(Module& parent, std::string_view name, const MLPOptions& options) : MLP(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  std::vector<Owned<Linear>> layers_;
};

struct CNNOptions {
  int64_t channels = 1;
  int64_t classes = 10;
  int64_t height = 28;
  int64_t width = 28;
  double dropout = 0.25;
};

// A small convolution net for images of at least 8x8: three stages of 3x3 convolution, batch norm,
// relu and 2x2 max pooling with 32, 64 and 64 channels, then two fully connected layers. 11 MFLOP
// forward per 28x28 image.
class CNN : public Module {
 public:
  using Options = CNNOptions;
  explicit CNN(const CNNOptions& options = {});
  CNN(Module& parent, std::string_view name, const CNNOptions& options = {}) : CNN(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Conv2d conv1;
  BatchNorm2d bn1;
  Conv2d conv2;
  BatchNorm2d bn2;
  Conv2d conv3;
  BatchNorm2d bn3;
  Dropout dropout;
  Linear fc1, fc2;

 private:
  CNNOptions options_;
};

struct ModelOptions {
  int64_t channels;
  int64_t height;
  int64_t width;
  int64_t classes;
};

// name is "mlp", "cnn", or "resnet18", "resnet34", "resnet50", "resnet101" or "resnet152" (with the
// small stem for images below 64x64); for any other name the error lists them.
std::unique_ptr<Module> make_model(std::string_view name, const ModelOptions& options);

}  // namespace binade::nn
