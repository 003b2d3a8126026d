// Activations that the kernel of another op applies to its result. Internal to core.
#pragma once
#include <binade/core/ops/linear.h>

namespace binade {

// Whether the kernel may apply it to a result of this dtype. While an observer looks, and where a
// precision policy has rules or would cast, the activation is an op of its own.
bool kernel_applies(Activation activation, DType result);

// activation(y) of an op whose kernel has applied it if kernel_applies().
Tensor activated(Tensor y, Activation activation);

}  // namespace binade
