// The gradients of pointwise ops as ops, for a backward that is itself recorded (create_graph): it
// can be differentiated again. A backward that is not recorded runs a kernel instead. Internal to
// core.
#pragma once
#include <binade/core/autograd/autograd.h>
#include <binade/kernels/pointwise/pointwise.h>

namespace binade::detail {

// False for the ops of one input that keep only their slope.
constexpr bool has_recorded_gradient(kernels::Unary f) { return !kernels::has_slope(f); }

// The saved tensor of an op of one input, which is x or y (kernels/pointwise/pointwise.h), and its
// numbers.
struct SavedUnary {
  kernels::Unary op;
  const Tensor& saved;
  double alpha = 0, beta = 0;
};
// dx = dy f'(x). REQUIRES: has_recorded_gradient().
Tensor recorded_gradient(const SavedUnary& f, const Tensor& dy);

// da and db of an op of two inputs, where they are needed.
Grads recorded_gradients(kernels::Binary f, const Tensor& dy, Needs needs, const Tensor& a,
                         const Tensor& b);

}  // namespace binade::detail
