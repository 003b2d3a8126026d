// Linear layers, and the feed-forward part of a transformer.
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

// linear(gelu(linear(x, w1, b1)), w2, b2): x [..., in], w1 [hidden, in], w2 [out, hidden] -> [...,
// out]; b1 [hidden] and b2 [out] may be undefined. In f32 on the CPU this is one op. The epilogue
// of the first product computes gelu and its slope, and the slope is saved instead of the product;
// in the backward an epilogue multiplies by the slope. In all other cases, under a precision policy
// and while an observer is registered, it is the three ops.
Tensor feedforward(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2,
                   const Tensor& b2);

// True if feedforward(x, ...) is one op now.
bool feedforward_is_one_op(const Tensor& x);

}  // namespace binade
