// Parameters and buffers of your own modules, registered where they are declared:
//
//   struct Scale : nn::Module {
//     nn::Parameter factor{*this, "factor", ones({8})};
//     nn::Buffer shift{*this, "shift", zeros({8})};
//     Tensor forward(const Tensor& x) override { return x * factor + shift; }
//   };
//
// Each is a Tensor. Assigning another tensor replaces its contents, for example to tie two
// parameters: a.factor = b.factor.
#pragma once
#include <binade/nn/module.h>

namespace binade::nn {

// REQUIRES, for both classes: the object is a member of the module, or lives as long as it.
class Parameter : public Tensor {
 public:
  Parameter(Module& parent, std::string_view name, Tensor value, const ParameterTraits& traits = {})
      : Tensor(std::move(value)) {
    parent.register_parameter(name, *this, traits);
  }
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter& other) = default;
  using Tensor::operator=;
};

class Buffer : public Tensor {
 public:
  Buffer(Module& parent, std::string_view name, Tensor value) : Tensor(std::move(value)) {
    parent.register_buffer(name, *this);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer& other) = default;
  using Tensor::operator=;
};

}  // namespace binade::nn
