#include <binade/core/autograd/op.h>
#include <binade/core/observe/observer.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/activation_internal.h>
#include <binade/core/ops/detail/recorded_gradients_internal.h>
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/pointwise/pointwise.h>

namespace binade {
namespace {

constexpr Op kRelu{"relu", OpClass::pointwise, true};

// The gradient of relu needs only its output, so the sums before relu need no memory: the op's node
// and the node of relu share one tensor.
Tensor applied_relu(const Tensor& sums) {
  if (!sums.requires_grad() || !grad_enabled()) {
    return sums;
  }
  Tensor y = sums.detach();
  return kRelu.record(
      {sums}, y, save(y), [](const Tensor& dy, Needs needs, const Tensor& y) -> Grads {
        if (grad_enabled()) {
          return {detail::recorded_gradient({kernels::Unary::relu, y}, dy)};
        }
        Tensor dx = needs.out_over(0, dy);
        kernels::unary_backward({.op = kernels::Unary::relu, .saved = y, .dy = dy, .dx = dx});
        return {dx};
      });
}

}  // namespace

bool kernel_applies(Activation activation, DType result) {
  if (activation != Activation::relu || detail::observers_read_values()) {
    return false;
  }
  const PrecisionScope* scope = detail::thread_state.precision;
  if (!scope) {
    return true;
  }
  const Decision decision =
      decide(kRelu.name, kRelu.op_class, detail::thread_state.label, scope->precision, result);
  return !scope->precision.rules && !(decision.casts && decision.dtype != result);
}

Tensor activated(Tensor y, Activation activation) {
  switch (activation) {
    case Activation::none: return y;
    case Activation::relu: return kernel_applies(activation, y.dtype()) ? applied_relu(y) : relu(y);
    case Activation::gelu_tanh: return gelu_tanh(y);
    case Activation::gelu: return gelu(y);
  }
  return y;
}

}  // namespace binade
