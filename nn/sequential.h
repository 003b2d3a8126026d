// Modules that are made of other modules.
#pragma once
#include <binade/nn/conv.h>
#include <binade/nn/norm.h>

namespace binade::nn {

// Runs its modules one after the other. They are named "0", "1", ... unless a name is given.
//
// A ReLU runs in the same pass as the Linear, Conv2d or BatchNorm before it. In evaluation a
// BatchNorm2d runs in the pass of the Conv2d before it. Subclasses of these classes run alone.
class Sequential : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;

  // seq.add<nn::Linear>({.in = 784, .out = 10})
  template <class M>
  M& add(const typename M::Options& options) {
    return adopt("", std::make_unique<M>(options));
  }
  template <class M, class... Args>
  M& add(Args&&... args) {
    return adopt("", std::make_unique<M>(std::forward<Args>(args)...));
  }
  template <class M>
  M& add_named(std::string_view name, const typename M::Options& options) {
    return adopt(name, std::make_unique<M>(options));
  }
  Module& add(std::unique_ptr<Module> module) { return adopt("", std::move(module)); }

  size_t size() const { return modules_.size(); }
  Module& operator[](size_t i) const;

 private:
  template <class M>
  M& adopt(std::string_view name, std::unique_ptr<M> module) {
    M* added = module.get();
    append(name, std::move(module));
    return *added;
  }
  void append(std::string_view name, std::unique_ptr<Module> module);

  std::vector<std::unique_ptr<Module>> modules_;
};

}  // namespace binade::nn
