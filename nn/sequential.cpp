#include <binade/core/ops.h>
#include <binade/nn/activation.h>
#include <binade/nn/linear.h>
#include <binade/nn/sequential.h>

#include <typeinfo>

namespace binade::nn {

namespace {

// The module as an M; null if it is of another class, be it one made from M.
template <class M>
M* exactly(Module* module) {
  return module && typeid(*module) == typeid(M) ? static_cast<M*>(module) : nullptr;
}

// Runs the first modules that make one pass, of three; those that are missing are null.
struct Pass {
  Tensor y;
  size_t modules;
};
Pass run_pass(Module& first, Module* second, Module* third, const Tensor& x) {
  const bool relu = exactly<ReLU>(second);
  if (auto* conv = exactly<Conv2d>(&first)) {
    if (auto* norm = exactly<BatchNorm2d>(second)) {
      return exactly<ReLU>(third) ? Pass{norm->relu_after(*conv, x), 3}
                                  : Pass{norm->after(*conv, x), 2};
    }
    if (relu) {
      return {conv->relu(x), 2};
    }
  }
  if (auto* linear = relu ? exactly<Linear>(&first) : nullptr) {
    return {linear->relu(x), 2};
  }
  if (auto* norm = relu ? dynamic_cast<BatchNorm*>(&first) : nullptr) {
    return {norm->relu(x), 2};
  }
  return {first(x), 1};
}

}  // namespace

Tensor Sequential::forward(const Tensor& x) {
  const auto module = [this](size_t i) {
    return i < modules_.size() ? modules_[i].get() : nullptr;
  };
  Tensor y = x;
  for (size_t i = 0; i < modules_.size();) {
    Pass pass = run_pass(*module(i), module(i + 1), module(i + 2), y);
    y = std::move(pass.y);
    i += pass.modules;
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
  const Tensor y = bn1.relu_after(conv1, x);
  return bn2.relu_after(conv2, y, downsample.size() > 0 ? downsample(x) : x);
}

}  // namespace binade::nn
