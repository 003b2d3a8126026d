// Shared by casts that a program asks for and casts that a precision policy asks for.
#pragma once
#include <binade/core/autograd/autograd.h>

namespace binade::detail {

// The gradient `dy` of a cast from `dtype`, written to the memory for the gradient of the cast's
// input.
Grads cast_gradient(const Tensor& dy, DType dtype, Needs needs);

}  // namespace binade::detail
