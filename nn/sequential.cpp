#include <binade/nn/fusion_internal.h>
#include <binade/nn/sequential.h>

namespace binade::nn {

Tensor Sequential::forward(const Tensor& x) {
  const auto module = [this](size_t i) {
    return i < modules_.size() ? modules_[i].get() : nullptr;
  };
  Tensor y = x;
  for (size_t i = 0; i < modules_.size();) {
    const Fusion::Chain chain = Fusion::chain_of(*modules_[i], module(i + 1), module(i + 2));
    y = Fusion::run(chain, y);
    i += chain.count();
  }
  return y;
}

Module& Sequential::operator[](size_t i) const {
  check(i < modules_.size(), "Sequential: got index ", i, " of ", modules_.size(), " modules");
  return *modules_[i];
}

void Sequential::append(std::string_view name, std::unique_ptr<Module> module) {
  check(module != nullptr, "Sequential: got a null module");
  register_module(name.empty() ? std::to_string(modules_.size()) : std::string(name), *module);
  modules_.push_back(std::move(module));
}

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

}  // namespace binade::nn
