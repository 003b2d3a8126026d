// Linear layers.
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/gemm/gemm.h>

namespace binade {

// Activations that matrix products and convolutions apply to their result: none, relu or gelu_tanh.
using kernels::Activation;

// activation(x weight^T + bias): x [..., in], weight [out, in], bias [out] or undefined -> [...,
// out]. relu runs in the same pass, unless an observer is registered or a precision policy has
// rules or casts.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              Activation activation = Activation::none);

}  // namespace binade
