// Modules that hold other modules or a function.
#pragma once
#include <binade/nn/module.h>

#include <functional>

namespace binade::nn {

// A list of modules of one class, named "0", "1", ... as in PyTorch's ModuleList. A List cannot be
// called: the forward() of its owner calls the modules.
//
//   nn::List<nn::Linear> layers{*this, "layers"};
//   layers.emplace({.in = 8, .out = 8});
//   for (nn::Linear& layer : layers) { x = relu(layer(x)); }
template <class M>
class List : public Module {
 public:
  using Module::Module;

  template <class T = M>
  M& emplace(const typename T::Options& options) {
    return add(std::make_unique<T>(options));
  }
  template <class... Args>
  M& emplace(Args&&... args) {
    return add(std::make_unique<M>(std::forward<Args>(args)...));
  }
  // Adds a module of class M or of a subclass; a List<Module> holds modules of any class.
  template <class Added>
  Added& add(std::unique_ptr<Added> module) {
    check(module != nullptr, "List: got a null module");
    Added& added = *module;
    register_module(std::to_string(modules_.size()), added);
    modules_.push_back(std::move(module));
    return added;
  }

  size_t size() const { return modules_.size(); }
  M& operator[](size_t i) const {
    check(i < modules_.size(), "List: got index ", i, " of ", modules_.size(), " modules");
    return *modules_[i];
  }

  class Iterator {
   public:
    explicit Iterator(const std::unique_ptr<M>* at) : at_(at) {}
    M& operator*() const { return **at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const std::unique_ptr<M>* at_;
  };
  Iterator begin() const { return Iterator(modules_.data()); }
  Iterator end() const { return Iterator(modules_.data() + modules_.size()); }

 private:
  std::vector<std::unique_ptr<M>> modules_;
};

// A function as a module, for example in a Sequential: it has no parameters of its own.
//   seq.add<nn::Lambda>([](const Tensor& x) { return x * 2; });
class Lambda : public Module {
 public:
  using Function = std::function<Tensor(const Tensor&)>;
  explicit Lambda(Function function) : function_(std::move(function)) {
    check(function_ != nullptr, "Lambda: got an empty function");
  }
  Lambda(Module& parent, std::string_view name, Function function) : Lambda(std::move(function)) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override { return function_(x); }

 private:
  Function function_;
};

}  // namespace binade::nn
