// Image classifiers and a U-Net.
#include <bench/peers/image_models.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/activation.h>
#include <binade/nn/init.h>
#include <binade/nn/pool.h>

namespace binade::peers {
namespace {

struct ConvNormOptions {
  nn::Conv2dOptions conv;
  bool relu = true;
};

void add_conv_norm(nn::Sequential& net, ConvNormOptions options) {
  options.conv.bias = false;
  net.add<nn::Conv2d>(options.conv);
  net.add<nn::BatchNorm2d>({.channels = options.conv.out});
  if (options.relu) {
    net.add<nn::ReLU>();
  }
}

// Without this, the activations of a deep net would fade to zero in evaluation.
void init_convolutions(const nn::Module& net) {
  for (const auto& [name, w] : net.named_parameters()) {
    if (w.dim() == 4) {
      nn::init::kaiming_normal(w, {.nonlinearity = nn::init::Nonlinearity::relu});
    }
  }
}

struct BottleneckOptions {
  int64_t in, width, out, groups, stride;
};

// Computes relu(body(x) + shortcut(x)); the shortcut is the identity where sizes do not change.
class Bottleneck : public nn::Module {
 public:
  using Options = BottleneckOptions;
  explicit Bottleneck(const BottleneckOptions& options) {
    const auto& [in, width, out, groups, stride] = options;
    add_conv_norm(body, {{.in = in, .out = width, .kernel = 1}});
    add_conv_norm(body, {{.in = width,
                          .out = width,
                          .kernel = 3,
                          .stride = stride,
                          .padding = 1,
                          .groups = groups}});
    add_conv_norm(body, {{.in = width, .out = out, .kernel = 1}, false});
    if (in != out || stride != 1) {
      add_conv_norm(shortcut, {{.in = in, .out = out, .kernel = 1, .stride = stride}, false});
    }
    register_module("body", body);
    register_module("shortcut", shortcut);
  }
  Tensor forward(const Tensor& x) override {
    return relu(body(x) + (shortcut.size() > 0 ? shortcut(x) : x));
  }

  nn::Sequential body, shortcut;
};

void add_double_conv(nn::Sequential& net, int64_t in, int64_t out) {
  add_conv_norm(net, {{.in = in, .out = out, .kernel = 3, .padding = 1}});
  add_conv_norm(net, {{.in = out, .out = out, .kernel = 3, .padding = 1}});
}

}  // namespace

std::unique_ptr<nn::Module> make_depthwise_net() {
  struct Stage {
    int64_t out, stride;
  };
  auto net = std::make_unique<nn::Sequential>();
  int64_t in = 32;
  add_conv_norm(*net, {{.in = 3, .out = in, .kernel = 3, .padding = 1}});
  for (const auto& [out, stride] :
       {Stage{64, 1}, {128, 2}, {128, 1}, {256, 2}, {256, 1}, {512, 2}, {512, 1}}) {
    add_conv_norm(
        *net, {{.in = in, .out = in, .kernel = 3, .stride = stride, .padding = 1, .groups = in}});
    add_conv_norm(*net, {{.in = in, .out = out, .kernel = 1}});
    in = out;
  }
  net->add<nn::GlobalAvgPool>();
  net->add<nn::Linear>({.in = in, .out = 10});
  init_convolutions(*net);
  return net;
}

std::unique_ptr<nn::Module> make_bottleneck_net(const BottleneckNetOptions& options) {
  auto net = std::make_unique<nn::Sequential>();
  int64_t in = 64;
  if (options.small_images) {
    add_conv_norm(*net, {{.in = 3, .out = in, .kernel = 3, .padding = 1}});
  } else {
    add_conv_norm(*net, {{.in = 3, .out = in, .kernel = 7, .stride = 2, .padding = 3}});
    net->add<nn::MaxPool2d>({.kernel = 3, .stride = 2, .padding = 1});
  }
  for (size_t stage = 0; stage < options.stages.size(); ++stage) {
    const auto& [blocks, width, out] = options.stages[stage];
    for (int64_t i = 0; i < blocks; ++i) {
      net->add<Bottleneck>({.in = in,
                            .width = width,
                            .out = out,
                            .groups = options.groups,
                            .stride = stage > 0 && i == 0 ? 2 : 1});
      in = out;
    }
  }
  net->add<nn::GlobalAvgPool>();
  net->add<nn::Linear>({.in = in, .out = options.classes});
  init_convolutions(*net);
  return net;
}

ViT::ViT(const ViTOptions& options)
    : patches({.in = 3, .out = options.embed, .kernel = options.patch, .stride = options.patch}),
      norm({.normalized_shape = {options.embed}}),
      head({.in = options.embed, .out = options.classes}) {
  const int64_t side = options.image / options.patch;
  positions = randn({side * side, options.embed}) * 0.02;
  register_module("patches", patches);
  register_parameter("positions", positions);
  for (int64_t i = 0; i < options.layers; ++i) {
    layers.emplace({.embed = options.embed,
                    .heads = options.heads,
                    .feedforward = 4 * options.embed,
                    .dropout = 0,
                    .activation = nn::FeedforwardActivation::gelu,
                    .batch_first = true,
                    .norm_first = true});
  }
  register_module("layers", layers);
  register_module("norm", norm);
  register_module("head", head);
}

Tensor ViT::forward(const Tensor& x) {
  Tensor y = transpose(flatten(patches(x), 2), 1, 2) + positions;  // [N, patches, embed]
  for (nn::TransformerEncoderLayer& layer : layers) {
    y = layer(y);
  }
  return head(mean(norm(y), {1}));
}

UNet::UNet(const UNetOptions& options)
    : head({.in = options.widths[0], .out = options.classes, .kernel = 1}) {
  int64_t in = 3;
  for (int64_t width : options.widths) {
    add_double_conv(down.emplace(), in, width);
    in = width;
  }
  for (size_t i = options.widths.size() - 1; i-- > 0;) {
    const int64_t width = options.widths[i];
    enlarge.emplace({.in = 2 * width, .out = width, .kernel = 2, .stride = 2});
    add_double_conv(up.emplace(), 2 * width, width);
  }
  register_module("down", down);
  register_module("enlarge", enlarge);
  register_module("up", up);
  register_module("head", head);
}

Tensor UNet::forward(const Tensor& x) {
  std::vector<Tensor> levels{down[0](x)};
  while (levels.size() < down.size()) {
    levels.push_back(
        down[levels.size()](max_pool2d(levels.back(), {.kernel = {2, 2}, .stride = {2, 2}})));
  }
  Tensor y = levels.back();
  for (size_t i = 0; i < up.size(); ++i) {
    y = up[i](cat({enlarge[i](y), levels[levels.size() - 2 - i]}, 1));
  }
  return head(y);
}

}  // namespace binade::peers
