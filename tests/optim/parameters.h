// Parameters without a model, and gradients set by hand: for tests of optimizers, on the test
// device (tests/kernels/support/test_device.h).
#pragma once
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/parameter.h>
#include <tests/kernels/support/test_device.h>

#include <deque>

namespace binade {

using kernels::test_device;

struct ParameterSpec {
  std::string name;
  Dims sizes;
  DType dtype = DType::f32;
  bool norm_or_bias = false;
  bool channels_last = false;
};

// Owns the tensors of a ParameterList; values are standard normal.
class TestParameters {
 public:
  explicit TestParameters(const std::vector<ParameterSpec>& specs, bool masters = false,
                          Device device = test_device()) {
    std::vector<ParameterSlot> slots;
    for (const ParameterSpec& spec : specs) {
      const DType dtype = is_half(spec.dtype) ? DType::f32 : spec.dtype;
      tensors.push_back(randn(spec.sizes, dtype).to(device));
      slots.push_back({.name = spec.name,
                       .handles = {&tensors.back()},
                       .norm_or_bias = spec.norm_or_bias,
                       .channels_last = spec.channels_last,
                       .dtype = spec.dtype});
    }
    arena = Arena::build(slots, masters);
    list = ParameterList(arena, arena->parameters());
  }

  // Sets the gradient that a backward with this loss scale would leave for a true gradient.
  void set_gradient(size_t i, const Tensor& gradient, double scale = 1) const {
    Leaf& leaf = list[i].leaf();
    NoGradGuard guard;
    leaf.buffer.copy_(gradient * scale);
    leaf.has_grad = true;
    leaf.scale = scale;
  }

  std::deque<Tensor> tensors;
  std::shared_ptr<Arena> arena;
  ParameterList list;
};

inline Tensor on_test_device(const Tensor& t) { return t.to(test_device()); }

inline std::vector<double> values_of(const Tensor& tensor) {
  const Tensor t = tensor.detach().to(Device{});
  std::vector<double> values;
  for (int64_t i = 0; i < t.numel(); ++i) {
    values.push_back(t.at(i));
  }
  return values;
}

inline std::string bytes_of(const Tensor& tensor) {  // of a flat tensor
  const Tensor t = tensor.detach().to(Device{});
  return std::string(reinterpret_cast<const char*>(t.view().data),
                     static_cast<size_t>(t.numel()) * size_of(t.dtype()));
}

}  // namespace binade
