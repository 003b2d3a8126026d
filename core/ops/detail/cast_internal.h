// Casts inside of ops. The gradient is shared by casts that a program asks for and casts that a
// precision policy asks for.
#pragma once
#include <binade/core/autograd/autograd.h>

namespace binade::detail {

// The gradient `dy` of a cast from `dtype`, written to the memory for the gradient of the cast's
// input.
Grads cast_gradient(const Tensor& dy, DType dtype, Needs needs);

// A parameter or statistic of a norm as the kernels take it: contiguous, in the compute dtype. Both
// steps are differentiable. An undefined tensor stays undefined.
Tensor compute_vector(const Tensor& t, DType compute);

}  // namespace binade::detail
