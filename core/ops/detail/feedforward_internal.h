// The op feedforward with a choice of its activation. Internal to the library.
#pragma once
#include <binade/core/ops/linear.h>

namespace binade {

struct Feedforward {
  const Tensor &x, &w1, &b1, &w2, &b2;  // of feedforward() in core/ops/linear.h
  Activation activation;                // gelu or gelu_tanh
};

// linear(activation(linear(x, w1, b1)), w2, b2), as one op under the same conditions.
Tensor feedforward(const Feedforward& operands);

}  // namespace binade
