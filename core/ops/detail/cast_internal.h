// What casts share, whether a program or a precision policy asked for them.
#pragma once
#include <binade/core/autograd/autograd.h>

namespace binade::detail {

// The gradient `dy` of a cast from `dtype`, written where the gradient of the cast's input goes.
Grads cast_gradient(const Tensor& dy, DType dtype, Needs needs);

}  // namespace binade::detail
