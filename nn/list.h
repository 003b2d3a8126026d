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
    return static_cast<M&>(*modules_[i]);
  }

  class Iterator {
   public:
    explicit Iterator(const std::unique_ptr<Module>* at) : at_(at) {}
    M& operator*() const { return static_cast<M&>(**at_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const std::unique_ptr<Module>* at_;
  };
  Iterator begin() const { return Iterator(modules_.data()); }
  Iterator end() const { return Iterator(modules_.data() + modules_.size()); }

 private:
  std::vector<std::unique_ptr<Module>> modules_;  // of class M
};

// Modules of one class under names of their own, as PyTorch's ModuleDict; they keep the order in
// which they were added. A Dict cannot be called.
//
//   nn::Dict<nn::Linear> heads{*this, "heads"};
//   heads.emplace("age", {.in = 8, .out = 1});
//   for (const std::string& name : heads.keys()) { y[name] = heads[name](x); }
template <class M>
class Dict : public Module {
 public:
  using Module::Module;

  template <class T = M>
  M& emplace(const std::string& key, const typename T::Options& options) {
    return add(key, std::make_unique<T>(options));
  }
  // Adds a module of class M or of a subclass; a Dict<Module> holds modules of any class. A key
  // that exists is an error.
  template <class Added>
  Added& add(const std::string& key, std::unique_ptr<Added> module) {
    check(module != nullptr, "Dict: got a null module");
    Added& added = *module;
    register_module(key, added);
    keys_.push_back(key);
    modules_.push_back(std::move(module));
    return added;
  }

  size_t size() const { return keys_.size(); }
  const std::vector<std::string>& keys() const { return keys_; }
  bool contains(std::string_view key) const { return find(key) < keys_.size(); }
  M& operator[](std::string_view key) const {
    const size_t at = find(key);
    check(at < keys_.size(), "Dict: got the key '", key, "', expected one of ", listed());
    return static_cast<M&>(*modules_[at]);
  }

 private:
  size_t find(std::string_view key) const {
    size_t at = 0;
    while (at < keys_.size() && keys_[at] != key) {
      ++at;
    }
    return at;
  }
  std::string listed() const {
    std::string all;
    for (const std::string& key : keys_) {
      all += (all.empty() ? "'" : ", '") + key + "'";
    }
    return all.empty() ? "none" : all;
  }

  std::vector<std::string> keys_;
  std::vector<std::unique_ptr<Module>> modules_;  // of class M
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
