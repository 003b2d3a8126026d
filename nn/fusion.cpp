#include <binade/core/observe/observer.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/activation_internal.h>
#include <binade/core/ops/detail/conv_batch_norm_internal.h>
#include <binade/core/ops/detail/feedforward_internal.h>
#include <binade/nn/activation.h>
#include <binade/nn/conv.h>
#include <binade/nn/fusion_internal.h>

#include <typeinfo>

namespace binade::nn {
namespace {

using kernels::Activation;

// The module as an M; null if its class is another one or a subclass of M.
template <class M>
M* exactly(Module* module) {
  return module && typeid(*module) == typeid(M) ? static_cast<M*>(module) : nullptr;
}

BatchNorm* exactly_batch_norm(Module* module) {
  if (auto* norm = exactly<BatchNorm2d>(module)) {
    return norm;
  }
  return exactly<BatchNorm1d>(module);
}

// True if the relu may join the pass before it. False if it has its own precision, if a rule may
// name its path, or if an observer would see it.
bool relu_joins(Module* module) {
  const auto* relu = exactly<ReLU>(module);
  const PrecisionScope* scope = detail::thread_state.precision;
  return relu && !relu->precision() && !detail::observers_read_values() &&
         !(scope && scope->precision.rules);
}

}  // namespace

Fusion::Chain Fusion::chain_of(Module& first, Module* second, Module* third) {
  const bool conv = exactly<Conv2d>(&first);
  if (conv && exactly<BatchNorm2d>(second)) {
    return {.first = first, .norm = second, .relu = relu_joins(third)};
  }
  const bool takes_relu = conv || exactly<Linear>(&first) || exactly_batch_norm(&first);
  return {.first = first, .relu = takes_relu && relu_joins(second)};
}

Tensor Fusion::run(const Chain& chain, const Tensor& x) {
  const bool norm_is_first = exactly_batch_norm(&chain.first) && !chain.norm;
  if (norm_is_first) {
    return run_norm({.first = chain.first,
                     .norm = &chain.first,
                     .residual = chain.residual,
                     .relu = chain.relu},
                    x);
  }
  if (!chain.norm && !chain.residual.defined()) {
    return run_first(chain.first, chain.relu, x);
  }
  auto* conv = exactly<Conv2d>(&chain.first);
  auto* norm = exactly<BatchNorm2d>(chain.norm);
  if (conv && norm && !conv->precision() && !norm->precision()) {
    const Conv2dOperands operands{x, conv->weight, conv->bias, conv->geometry()};
    const BatchNormOperands statistics{norm->weight, norm->bias, norm->running_mean,
                                       norm->running_var};
    const BatchNormOptions options = norm->op_options(chain.residual, chain.relu);
    if (conv2d_batch_norm_is_one_op(operands, statistics, options)) {
      return norm->scoped([&] { return conv2d_batch_norm(operands, statistics, options); });
    }
  }
  return run_norm(chain, chain.first(x));
}

// relu?(first(x))
Tensor Fusion::run_first(Module& first, bool relu, const Tensor& x) {
  if (auto* conv = relu ? exactly<Conv2d>(&first) : nullptr) {
    return conv->scoped(
        [&] { return conv2d(x, conv->weight, conv->bias, conv->geometry(), Activation::relu); });
  }
  if (auto* layer = relu ? exactly<Linear>(&first) : nullptr) {
    return layer->scoped([&] { return linear(x, layer->weight, layer->bias, Activation::relu); });
  }
  const Tensor y = first(x);
  return relu ? binade::relu(y) : y;
}

// relu?(norm?(x) + residual?)
Tensor Fusion::run_norm(const Chain& chain, const Tensor& x) {
  if (BatchNorm* norm = exactly_batch_norm(chain.norm)) {
    return norm->scoped([&] { return norm->normalize(x, chain.residual, chain.relu); });
  }
  Tensor y = chain.norm ? (*chain.norm)(x) : x;
  y = chain.residual.defined() ? y + chain.residual : y;
  return chain.relu ? relu(y) : y;
}

Tensor Fusion::run_feedforward(Module& linear1, Module& linear2, const Tensor& x,
                               Activation activation) {
  const auto *first = exactly<Linear>(&linear1), *second = exactly<Linear>(&linear2);
  if (first && second && !first->precision() && !second->precision() && feedforward_is_one_op(x)) {
    return feedforward({x, first->weight, first->bias, second->weight, second->bias, activation});
  }
  return linear2(activated(linear1(x), activation));
}

}  // namespace binade::nn
