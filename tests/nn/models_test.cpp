// The samples' models: shapes for many image sizes, size and cost, and that they learn.
#include <binade/core/tensor/create.h>
#include <binade/nn/losses.h>
#include <binade/nn/models.h>
#include <gtest/gtest.h>

namespace binade::nn::models_test {
namespace {

TEST(Models, AcceptImageSizes) {
  NoGradGuard guard;
  for (int64_t channels : {1, 3}) {
    for (const auto& [height, width] : {std::pair{8, 8}, {28, 28}, {32, 20}, {9, 100}}) {
      const ModelOptions options{channels, height, width, 7};
      const Tensor x = randn({2, channels, height, width});
      for (const char* name : {"mlp", "cnn"}) {
        EXPECT_EQ((*make_model(name, options))(x).sizes(), (Dims{2, 7})) << name;
      }
    }
  }
  EXPECT_THROW(make_model("cnn", {1, 7, 28, 10}), Error);
  EXPECT_THROW(make_model("vgg", {1, 28, 28, 10}), Error);
  EXPECT_THROW(make_model("mlp", {0, 28, 28, 10}), Error);
  EXPECT_THROW((*make_model("cnn", {1, 28, 28, 10}))(randn({1, 1, 32, 32})), Error);
}

TEST(ResNet, HasTorchvisionsParameters) {
  ResNet net({.depth = 18, .classes = 1000});
  EXPECT_EQ(net.parameter_count(), 11'689'512);
  const NamedTensors parameters = net.named_parameters();
  EXPECT_EQ(parameters.size(), 62u);
  EXPECT_EQ(parameters[0].first, "conv1.weight");
  EXPECT_EQ(parameters[3].first, "layer1.0.conv1.weight");
  EXPECT_EQ(net.named_buffers().size(), 40u);
  bool projection = false;
  for (const auto& [name, tensor] : parameters) {
    projection |= name == "layer2.0.downsample.0.weight" && tensor.sizes() == Dims{128, 64, 1, 1};
  }
  EXPECT_TRUE(projection);
}

TEST(ResNet, BottlenecksHaveTorchvisionsParameters) {
  ResNet net({.depth = 50});
  EXPECT_EQ(net.parameter_count(), 25'557'032);
  const NamedTensors parameters = net.named_parameters();
  EXPECT_EQ(parameters.size(), 161u);
  EXPECT_EQ(net.named_buffers().size(), 106u);
  const auto sizes = [&](std::string_view name) {
    for (const auto& [key, tensor] : parameters) {
      if (key == name) {
        return tensor.sizes();
      }
    }
    return Dims{};
  };
  EXPECT_EQ(sizes("layer1.0.downsample.0.weight"), (Dims{256, 64, 1, 1}));
  EXPECT_EQ(sizes("layer1.0.downsample.1.weight"), (Dims{256}));
  EXPECT_EQ(sizes("layer1.1.downsample.0.weight"), Dims{});
  EXPECT_EQ(sizes("layer2.0.conv1.weight"), (Dims{128, 256, 1, 1}));
  EXPECT_EQ(sizes("layer2.0.conv2.weight"), (Dims{128, 128, 3, 3}));
  EXPECT_EQ(sizes("layer4.2.bn3.bias"), (Dims{2048}));
  EXPECT_EQ(sizes("fc.weight"), (Dims{1000, 2048}));
}

// The counts of torchvision at width 64; a narrow model has the same structure.
TEST(ResNet, DeeperOnesHaveTorchvisionsBlocks) {
  const auto blocks = [](const ResNetOptions& options) {
    ResNet net(options);
    return std::vector<size_t>{net.layer1.size(), net.layer2.size(), net.layer3.size(),
                               net.layer4.size()};
  };
  EXPECT_EQ(blocks({.depth = 34, .width = 2}), (std::vector<size_t>{3, 4, 6, 3}));
  EXPECT_EQ(blocks({.depth = 101, .width = 2}), (std::vector<size_t>{3, 4, 23, 3}));
  EXPECT_EQ(blocks({.depth = 152, .width = 2}), (std::vector<size_t>{3, 8, 36, 3}));
  EXPECT_EQ(blocks({.depth = 50, .blocks = {1, 2, 1, 3}, .width = 2}),
            (std::vector<size_t>{1, 2, 1, 3}));
}

TEST(ResNet, WrongOptionsAreErrors) {
  const auto message = [](const ResNetOptions& options) -> std::string {
    try {
      ResNet net(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message({.depth = 20}).find("got depth 20, expected 18, 34, 50, 101 or 152"),
            std::string::npos);
  EXPECT_NE(message({.blocks = {1, 1, 1}}).find("got blocks of 3 numbers"), std::string::npos);
  EXPECT_NE(message({.blocks = {1, 1, 0, 1}}).find("four positive numbers"), std::string::npos);
  EXPECT_NE(message({.width = 0}).find("width = 0"), std::string::npos);
  EXPECT_NE(message({.classes = -1}).find("classes = -1"), std::string::npos);
}

TEST(ResNet, Runs) {
  NoGradGuard guard;
  ResNet small({.classes = 5, .small_images = true}), large({.classes = 5});
  EXPECT_EQ(small(randn({1, 3, 16, 16})).sizes(), (Dims{1, 5}));
  EXPECT_EQ(large(randn({1, 3, 64, 64})).sizes(), (Dims{1, 5}));
  const auto deep = make_model("resnet50", {3, 24, 24, 5});
  EXPECT_EQ((*deep)(randn({1, 3, 24, 24})).sizes(), (Dims{1, 5}));
}

// Plain gradient descent on one batch: the optimizers are in another library.
TEST(CNN, LearnsABatch) {
  manual_seed(5);
  CNN net({.classes = 3, .height = 12, .width = 12, .dropout = 0});
  const Tensor x = randn({12, 1, 12, 12});
  Tensor y = empty({12}, DType::i64);
  for (int i = 0; i < 12; ++i) {
    y.data<int64_t>()[i] = i % 3;
  }
  const ParameterList parameters = net.parameters();
  double first = 0, last = 0;
  for (int step = 0; step < 25; ++step) {
    const Tensor loss = cross_entropy(net(x), y);
    last = loss.item();
    first = step == 0 ? last : first;
    loss.backward();
    NoGradGuard guard;
    for (const binade::Parameter& parameter : parameters) {
      parameter.value.copy_(parameter.value.detach() - parameter.value.grad() * 0.1);
      parameter.value.zero_grad();
    }
  }
  EXPECT_LT(last, first / 10);
  net.eval();
  EXPECT_EQ(accuracy(net(x), y), 1);
}

}  // namespace
}  // namespace binade::nn::models_test
