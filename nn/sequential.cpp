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

}  // namespace binade::nn
